//! The program `ws-ckpt`.
fn main() -> std::process::ExitCode {
    cofferdam::programs::ws_ckpt::main()
}
