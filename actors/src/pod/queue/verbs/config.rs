//! `config.validate`, `config.set`.

use cofferdam_protocol::pod::{ConfigSet, ConfigValidate, PatchedConfig, RootRefusal};
use cofferdam_storage::pod::check_root;
use serde_json::{Map, Value};

use super::{Facts, Look, Outcome, Queue, Refusal, Site, Verb};

/// What the disk says of the sandbox root in a patch, if one is in it; and what a person should know about one that is
/// accepted.
type Root = Option<(Result<String, RootRefusal>, Option<String>)>;

impl Verb for ConfigValidate {
    type Found = Root;

    fn look(&self, _: &Queue, site: &Site) -> Look<Root> {
        look(&self.patch, site)
    }

    fn apply(self, queue: &mut Queue, facts: Facts<Root>) -> Result<Outcome<PatchedConfig>, Refusal> {
        Ok(Outcome::Done(patched(queue, &self.patch, facts.found)))
    }
}

impl Verb for ConfigSet {
    type Found = Root;

    fn look(&self, _: &Queue, site: &Site) -> Look<Root> {
        look(&self.patch, site)
    }

    fn apply(self, queue: &mut Queue, facts: Facts<Root>) -> Result<Outcome<PatchedConfig>, Refusal> {
        let answer = patched(queue, &self.patch, facts.found);
        queue.set_config(answer.config.clone());
        Ok(Outcome::Done(answer))
    }
}

fn look(patch: &Map<String, Value>, site: &Site) -> Look<Root> {
    match patch.get("sandboxRoot").and_then(Value::as_str) {
        Some(root) if !root.is_empty() => {
            let (root, protected) = (root.to_owned(), site.protected.clone());
            Look::Blocking(Box::new(move || {
                let checked = check_root(&root, &protected);
                let remark = checked.as_ref().ok().and_then(|root| protected.remark(root));
                Some((checked, remark))
            }))
        }
        _ => Look::Ready(None),
    }
}

fn patched(queue: &Queue, patch: &Map<String, Value>, root: Root) -> PatchedConfig {
    // It was looked at whenever it is asked for.
    let unseen = || (Err(RootRefusal::Bad("the directory was not looked at".to_owned())), None);
    let (checked, remark) = root.unwrap_or_else(unseen);
    let (config, mut messages) = queue.config().patched(patch, |_| checked);
    messages.extend(remark.map(|remark| format!("sandboxRoot: {remark}")));
    PatchedConfig { config, messages }
}
