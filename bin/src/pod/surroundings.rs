//! Where a process that keeps tasks finds itself.

use std::path::PathBuf;

use cofferdam_storage::pod::Surroundings;

/// Where this process finds itself.
pub(crate) fn surroundings() -> Surroundings {
    let dir = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    Surroundings {
        home: std::env::home_dir(),
        dsh_home: dir("DSH_HOME"),
        cwd: std::env::current_dir().ok(),
        system: ["SystemRoot", "ProgramFiles"].into_iter().filter_map(dir).collect(),
        // A daemon whose tasks this program keeps says so.
        own: dir("COFFERDAM_STATE_DIR").into_iter().collect(),
    }
}
