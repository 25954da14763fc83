//! The program `cosh-core`.
fn main() -> std::process::ExitCode {
    cofferdam::programs::cosh_core::main()
}
