//! The program `isolation-pod-core`.
fn main() -> std::process::ExitCode {
    cofferdam::programs::pod_core::main()
}
