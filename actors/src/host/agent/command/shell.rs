//! The preset that is always there: what a task is told is a shell script.

use std::path::Path;

use cofferdam_storage::pod::presets::{Argument, BrokenPreset, CommandPreset};

/// Where programs are looked for if the environment does not say.
pub(super) const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Its id.
pub const SHELL: &str = "shell";

/// The preset, for the best shell that is found in `path`, a list as in `$PATH`.
pub fn shell(path: Option<&str>) -> Result<CommandPreset, BrokenPreset> {
    let path = path.unwrap_or(USUAL_PATH);
    let there = |shell: &&str| {
        path.split(':').any(|dir| dir.starts_with('/') && Path::new(dir).join(shell).is_file())
    };
    let Some(shell) = ["bash", "sh"].into_iter().find(there) else {
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
