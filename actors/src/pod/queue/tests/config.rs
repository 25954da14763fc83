//! The configuration as requests change it.

use cofferdam_protocol::pod::{Config, ConfigGet, ConfigValidate};
use serde_json::json;

use super::Pod;

fn config(pod: &mut Pod) -> Config {
    pod.ask::<ConfigGet>(json!({})).unwrap().config
}

#[test]
fn a_patch_that_is_only_validated_changes_nothing() {
    let mut pod = Pod::new(1);
    pod.reserve("a");
    pod.reserve("b");
    let before = config(&mut pod);
    pod.forget();
    let patched = pod.ask::<ConfigValidate>(json!({"patch": {"maxConcurrent": 99}})).unwrap();
    assert_eq!((patched.config.max_concurrent, patched.messages.len()), (8, 1));
    assert_eq!(config(&mut pod), before);
    assert!(pod.told().is_empty());
}

#[test]
fn a_root_that_is_refused_keeps_the_old_one_and_lets_the_rest_of_the_patch_through() {
    let mut pod = Pod::new(1);
    let root = pod.config.sandbox_root.clone();
    for (bad, code) in [("rel/dir", "BAD_ROOT"), ("/", "ROOT_PROTECTED")] {
        let messages = pod.configure(json!({"sandboxRoot": bad, "maxConcurrent": 4}));
        assert!(messages[0].starts_with(&format!("sandboxRoot: {code}")), "{messages:?}");
        let config = config(&mut pod);
        assert_eq!((&config.sandbox_root, config.max_concurrent), (&root, 4));
    }
    assert_eq!(pod.configure(json!({"sandboxRoot": format!("{root}///")})), [""; 0]);
    assert_eq!(config(&mut pod).sandbox_root, root);
}

#[test]
fn a_root_where_the_database_is_is_worth_a_remark() {
    let mut pod = Pod::new(1);
    let messages = pod.configure(json!({"sandboxRoot": "/nowhere/isolation-pod/tasks"}));
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(config(&mut pod).sandbox_root, "/nowhere/isolation-pod/tasks");
}
