//! The preset that is always there: what a task is told is a shell script.

use std::path::Path;

use cofferdam_storage::pod::presets::{Argument, BrokenPreset, CommandPreset};

/// Where programs are looked for if the environment does not say.
pub(super) const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Whether a program is in a list of directories as in `$PATH`.
fn is_in(path: &str, program: &str) -> bool {
    path.split(':').any(|dir| dir.starts_with('/') && Path::new(dir).join(program).is_file())
}

/// Why the program of a preset cannot be run, if it is not there.
pub(super) fn missing(preset: &CommandPreset, path: Option<&str>) -> Option<String> {
    let path = path.unwrap_or(USUAL_PATH);
    let texts = preset.argv_first.iter().map_while(|argument| match argument {
        Argument::One(text) => Some(text.as_str()),
        Argument::Together(_) => None,
    });
    // `env NAME=value program` is the way to set a variable.
    let program = texts.clone().next().filter(|first| *first != "env");
    let program = program.or_else(|| texts.skip(1).find(|text| !text.contains('=')))?;
    let there = match program.contains('/') {
        true => Path::new(program).is_file(),
        false => is_in(path, program),
    };
    // What a placeholder stands for is known when there is a task.
    (!there && !program.contains('{')).then(|| {
        format!(
            "its program {program} is not found in the daemon's PATH; install it, or name its path in the preset, and \
             start the daemon anew"
        )
    })
}

/// Its id.
pub const SHELL: &str = "shell";

/// The preset, for the best shell that is found in `path`, a list as in `$PATH`.
pub fn shell(path: Option<&str>) -> Result<CommandPreset, BrokenPreset> {
    let path = path.unwrap_or(USUAL_PATH);
    let Some(shell) = ["bash", "sh"].into_iter().find(|shell| is_in(path, shell)) else {
        return Err(BrokenPreset {
            id: SHELL.to_owned(),
            why: format!("there is neither bash nor sh in {path}; set PATH for the daemon"),
        });
    };
    // A script may begin with a dash, and may itself read standard input, which is empty.
    let argv: Vec<_> = [shell, "-c", "--", "{prompt}"].map(|text| Argument::One(text.to_owned())).into();
    Ok(CommandPreset {
        id: SHELL.to_owned(),
        name: "shell script".to_owned(),
        argv_first: argv.clone(),
        // A script remembers nothing but files: the next one is what follows.
        argv_follow_up: Some(argv),
        needs: vec!["bash".to_owned()],
        ..CommandPreset::default()
    })
}
