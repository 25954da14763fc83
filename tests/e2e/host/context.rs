//! What an agent is told of the main conversation: from the stored session to the program's arguments.

use std::io::{BufRead, BufReader, Write};

use cofferdam_tests::files;
use cofferdam_tests::host::HostSite;
use cofferdam_tests::session::{directory_name, envelope, id, put};
use cofferdam_tests::skip;

use super::shell::{Daemon, site, with_either_daemon};

with_either_daemon! {
    the_stored_main_conversation_reaches_the_program_in_its_system_prompt_and_in_one_piece
}

/// Prints each of its arguments between marks.
const TELLER: &str = r#"
[[presets]]
id = "teller"
argv_first = ["printf", "<<<%s>>>", "{system_prompt}", "{prompt}"]
"#;

fn the_stored_main_conversation_reaches_the_program_in_its_system_prompt_and_in_one_piece(site: HostSite) {
    let site = site.with_presets(TELLER);
    let _daemon = site.start_with_shell();
    let workspace = site.path("project").canonicalize().unwrap_or_else(|_| site.site().directory("project"));
    let main = id(1).to_string();
    let store = site.path("home/.copilot-shell");
    let scope = store.join("cosh-core/sessions").join(directory_name(&workspace));
    put(&scope, &id(1), envelope(&id(1), &workspace), 1);
    site.site().hand_over(&store);
    // Where it works the daemon knows from its client.
    let mut client = BufReader::new(site.control());
    let query = format!("sessionId={main}&cwd={}", workspace.display());
    write!(client.get_mut(), "GET /api/v1/events?{query} HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut heard = String::new();
    while !heard.contains("retry:") {
        assert_ne!(client.read_line(&mut heard).unwrap(), 0, "{heard}");
    }
    let run = || site.ok(&["task", "run", "the work to do", "--preset", "teller", "--main", &main, "--wait"]);
    let said = run();
    let arguments: Vec<_> = said.trim_end().split("<<<").skip(1).collect();
    let [system, prompt] = arguments[..] else { panic!("{said}") };
    assert_eq!(prompt, "the work to do>>>");
    for part in ["User:\n> hello", "Assistant:\n> yes", site.root().to_str().unwrap()] {
        assert_eq!(system.matches(part).count(), 1, "{part}: {said}");
    }
    assert!(system.find("> hello") < system.find("> yes"), "{said}");
    site.ok(&["config", "set", "readContext=false"]);
    let said = run();
    assert!(!said.contains("> hello") && said.ends_with("<<<the work to do>>>\n"), "{said}");
    assert!(!files::read(scope.join(format!("{main}.json"))).is_empty());
}
