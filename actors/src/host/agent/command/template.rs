//! What a program is started with: a preset's template, filled in.

use cofferdam_protocol::pod::session_uuid;
use cofferdam_storage::pod::presets::Argument;

/// The longest argument that the kernel takes, in bytes, with the zero at its end.
const MAX_ARGUMENT: usize = 128 << 10;

/// What the placeholders stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct Values<'a> {
    pub(super) prompt: &'a str,
    pub(super) system_prompt: &'a str,
    pub(super) task_dir: &'a str,
    /// `pod-session-…`.
    pub(super) session_id: &'a str,
    pub(super) allowed_tools: &'a str,
    /// The same, as the agent calls them.
    pub(super) agent_tools: &'a str,
    pub(super) model: &'a str,
}

impl Values<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        Some(match name {
            "prompt" => self.prompt,
            "system_prompt" => self.system_prompt,
            "task_dir" => self.task_dir,
            "session_id" => self.session_id,
            "session_uuid" => session_uuid(self.session_id).unwrap_or(self.session_id),
            "allowed_tools" => self.allowed_tools,
            "agent_tools" => self.agent_tools,
            "model" => self.model,
            _ => return None,
        })
    }

    /// Fills one text in, once: what a placeholder stands for is no template. Whether none stood for nothing.
    fn fill(&self, mut text: &str) -> (String, bool) {
        let (mut filled, mut whole) = (String::new(), true);
        while let Some(start) = text.find('{') {
            let (before, rest) = text.split_at(start);
            filled.push_str(before);
            let found = rest[1..].split_once('}').and_then(|(name, after)| Some((self.get(name)?, after)));
            text = match found {
                Some((value, after)) => {
                    filled.push_str(value);
                    whole &= !value.is_empty();
                    after
                }
                None => {
                    filled.push('{');
                    &rest[1..]
                }
            };
        }
        filled.push_str(text);
        (filled, whole)
    }
}

/// Program and arguments; the error is for people.
pub(super) fn argv(template: &[Argument], values: &Values<'_>) -> Result<Vec<String>, String> {
    let mut argv = Vec::new();
    for argument in template {
        match argument {
            Argument::One(text) => argv.push(values.fill(text).0),
            Argument::Together(texts) => {
                let filled: Vec<_> = texts.iter().map(|text| values.fill(text)).collect();
                if filled.iter().all(|(_, whole)| *whole) {
                    argv.extend(filled.into_iter().map(|(text, _)| text));
                }
            }
        }
    }
    if argv.iter().any(|text| text.contains('\0')) {
        return Err("a program cannot be given a zero byte; leave it out".to_owned());
    }
    match argv.iter().any(|text| text.len() >= MAX_ARGUMENT) {
        true => Err("the text is too long for a program's argument, which takes 128 KiB; put it into a file, or use a \
                     preset that takes it on standard input"
            .to_owned()),
        false => Ok(argv),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: Values<'_> = Values {
        prompt: "say {model} {task_dir}",
        system_prompt: "",
        task_dir: "/t",
        session_id: "pod-session-u",
        allowed_tools: "bash,read",
        agent_tools: "Bash,Read",
        model: "",
    };

    fn filled(template: &[&str]) -> Vec<String> {
        let template: Vec<_> = template.iter().map(|text| Argument::One((*text).to_owned())).collect();
        argv(&template, &VALUES).unwrap()
    }

    #[test]
    fn placeholders_are_filled_in_once_and_other_braces_stay() {
        assert_eq!(filled(&["p", "{prompt}"]), ["p", "say {model} {task_dir}"]);
        assert_eq!(filled(&["{session_id}:{session_uuid}"]), ["pod-session-u:u"]);
        assert_eq!(
            filled(&["{\"a\": {allowed_tools}}", "{", "}{x}{{task_dir}"]),
            ["{\"a\": bash,read}", "{", "}{x}{/t"]
        );
        assert_eq!(filled(&["[{model}]", "{agent_tools}"]), ["[]", "Bash,Read"]);
    }

    #[test]
    fn what_goes_together_is_left_out_if_it_stands_for_nothing() {
        let together =
            |texts: &[&str]| Argument::Together(texts.iter().map(|text| (*text).to_owned()).collect());
        let template =
            [Argument::One("p".to_owned()), together(&["-m", "{model}"]), together(&["-d", "{task_dir}"])];
        assert_eq!(argv(&template, &VALUES).unwrap(), ["p", "-d", "/t"]);
    }

    #[test]
    fn what_the_kernel_would_not_take_is_refused_with_a_way_out() {
        let template = [Argument::One("{prompt}".to_owned())];
        let of = |prompt: &str| argv(&template, &Values { prompt, ..VALUES });
        assert!(of(&"x".repeat((128 << 10) - 1)).is_ok());
        assert!(of(&"x".repeat(128 << 10)).unwrap_err().contains("standard input"));
        assert!(of("a\0b").unwrap_err().contains("zero byte"));
    }
}
