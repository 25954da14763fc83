//! The program `cofferdam`.
fn main() -> std::process::ExitCode {
    cofferdam::programs::cofferdam::main()
}
