//! The subject as a command.

fn main() {
    syscap_subject::serve(std::io::stdin().lock(), std::io::stdout());
}
