//! The terminal: the one place that prints, asks, and knows about colours.

use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Read, Write};

use serde::Serialize;

/// Where a program prints and asks. In tests, buffers.
pub(crate) struct Terminal {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    input: Box<dyn BufRead>,
    out_colours: bool,
    err_colours: bool,
    /// Whether a person is there, for whom ending the input is an answer, too.
    interactive: bool,
    /// Whether the line that is printed last can be written over.
    err_is_terminal: bool,
}

/// The colours in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Terminal {
    /// That of this process. Colours only where a terminal shows them and `NO_COLOR` does not forbid it.
    pub(crate) fn of_process() -> Self {
        Self {
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
            input: Box::new(io::stdin().lock()),
            out_colours: colours_on(io::stdout().is_terminal()),
            err_colours: colours_on(io::stderr().is_terminal()),
            interactive: io::stdin().is_terminal() && io::stderr().is_terminal(),
            err_is_terminal: io::stderr().is_terminal(),
        }
    }

    /// Prints a result, in one piece and at once.
    pub(crate) fn print(&mut self, text: impl Display) -> io::Result<()> {
        self.out.write_all(format!("{text}\n").as_bytes())?;
        self.out.flush()
    }

    /// Prints a result as JSON, in which what can steer a terminal is escaped.
    pub(crate) fn print_json(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.print(without_controls(&serde_json::to_string_pretty(value)?))
    }

    /// The same on one line, for whoever reads line by line.
    pub(crate) fn print_json_line(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.print(without_controls(&serde_json::to_string(value)?))
    }

    /// Whether a person is there who can be asked.
    pub(crate) fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// Whether [`progress`](Self::progress) is seen by anybody.
    pub(crate) fn shows_progress(&self) -> bool {
        self.err_is_terminal
    }

    /// Says how far something is, in the place of what was said so before; an empty text ends that. Only a terminal shows
    /// it.
    pub(crate) fn progress(&mut self, text: &str) {
        if self.err_is_terminal {
            let _ = write!(self.err, "\r\x1b[K{text}").and_then(|()| self.err.flush());
        }
    }

    /// What comes through the standard input, as far as `most` bytes and one more.
    pub(crate) fn read_all(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        (&mut self.input).take(most as u64 + 1).read_to_end(&mut text)?;
        Ok(text)
    }

    /// Says something beside the result. That nobody hears it is no failure.
    pub(crate) fn say(&mut self, text: impl Display) {
        let _ = self.err.write_all(format!("{text}\n").as_bytes());
    }

    /// Says something that deserves attention.
    pub(crate) fn warn(&mut self, text: impl Display) {
        let text = painted(self.err_colours, Colour::Yellow, &text.to_string());
        self.say(text);
    }

    /// Says what failed.
    pub(crate) fn complain(&mut self, text: impl Display) {
        let text = painted(self.err_colours, Colour::Red, &text.to_string());
        self.say(text);
    }

    /// Text for [`print`](Self::print) in a colour, where colours are shown.
    pub(crate) fn paint(&self, colour: Colour, text: &str) -> String {
        painted(self.out_colours, colour, text)
    }

    /// Asks for consent; anything but `y` or `yes` is none. Answers may come from a pipe. `None` if there is no answer
    /// and nobody who could have given one.
    pub(crate) fn confirm(&mut self, question: &str) -> io::Result<Option<bool>> {
        write!(self.err, "{question} [y/N] ")?;
        self.err.flush()?;
        let mut answer = String::new();
        self.input.read_line(&mut answer)?;
        if !self.interactive {
            // Nobody's return key ended the line of the question.
            self.say(answer.trim());
        }
        if answer.is_empty() && !self.interactive {
            return Ok(None);
        }
        Ok(Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")))
    }
}

/// The same JSON with those control characters and marks of direction escaped that JSON itself lets pass. They stand
/// nowhere but in its strings.
fn without_controls(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\x7f'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => text.push(c),
        }
    }
    text
}

/// Whether a stream gets colours.
pub(crate) fn colours_on(is_terminal: bool) -> bool {
    is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn painted(on: bool, colour: Colour, text: &str) -> String {
    let code = match colour {
        Colour::Red => 31,
        Colour::Green => 32,
        Colour::Yellow => 33,
        Colour::Cyan => 36,
    };
    if on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

#[cfg(test)]
pub(crate) mod testing {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// What was printed to one stream.
    #[derive(Clone, Default)]
    pub(crate) struct Printed(Rc<RefCell<Vec<u8>>>);

    impl Printed {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.borrow().clone()).unwrap()
        }
    }

    impl Write for Printed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A terminal without colours, with what is printed and complained. `input` is what a person types, or what comes
    /// through a pipe.
    pub(crate) fn terminal(input: Input) -> (Terminal, Printed, Printed) {
        let (out, err) = (Printed::default(), Printed::default());
        let (text, interactive) = match input {
            Input::Typed(text) => (text, true),
            Input::Piped(text) => (text, false),
        };
        let terminal = Terminal {
            out: Box::new(out.clone()),
            err: Box::new(err.clone()),
            input: Box::new(io::Cursor::new(text)),
            out_colours: false,
            err_colours: false,
            interactive,
            err_is_terminal: interactive,
        };
        (terminal, out, err)
    }

    /// Where answers come from.
    #[derive(Clone, Copy)]
    pub(crate) enum Input {
        Typed(&'static str),
        Piped(&'static str),
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Input;
    use super::*;

    #[test]
    fn only_a_clear_yes_is_consent() {
        for (answer, consent) in
            [("y\n", true), ("YES\n", true), ("\n", false), ("n\n", false), ("yup\n", false)]
        {
            for input in [Input::Typed(answer), Input::Piped(answer)] {
                let (mut terminal, out, err) = testing::terminal(input);
                assert_eq!(terminal.confirm("Really?").unwrap(), Some(consent), "{answer:?}");
                assert_eq!(out.text(), "");
                assert!(err.text().starts_with("Really? [y/N] "), "{}", err.text());
            }
        }
    }

    #[test]
    fn json_does_not_steer_the_terminal_and_says_the_same() {
        let (mut terminal, out, _) = testing::terminal(Input::Piped(""));
        let value = "é \x1b[31m \u{9b}31m \x7f \u{202e} \u{2028} \u{2069} \u{61c} \u{200f}";
        terminal.print_json(&[value]).unwrap();
        let shown = r#""é \u001b[31m \u009b31m \u007f \u202e \u2028 \u2069 \u061c \u200f""#;
        assert_eq!(out.text(), format!("[\n  {shown}\n]\n"));
        assert_eq!(serde_json::from_str::<[String; 1]>(&out.text()).unwrap(), [value]);
    }

    #[test]
    fn an_end_without_an_answer_is_a_no_only_where_a_person_is() {
        let (mut terminal, ..) = testing::terminal(Input::Typed(""));
        assert_eq!(terminal.confirm("Really?").unwrap(), Some(false));
        let (mut terminal, ..) = testing::terminal(Input::Piped(""));
        assert_eq!(terminal.confirm("Really?").unwrap(), None);
    }

    #[test]
    fn without_colours_text_stays_as_it_is() {
        assert_eq!(painted(false, Colour::Red, "no"), "no");
        assert_eq!(painted(true, Colour::Red, "no"), "\x1b[31mno\x1b[0m");
    }
}
