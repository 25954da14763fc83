//! `config.validate`, `config.set`.

use cofferdam_protocol::pod::{ConfigSet, ConfigValidate, PatchedConfig, RootRefusal};
use cofferdam_storage::pod::check_root;
use serde_json::{Map, Value};

use super::{Facts, Look, Outcome, Queue, Refusal, Site, Verb};

/// What the disk says of the sandbox root in a patch, if one is in it.
type Root = Option<Result<String, RootRefusal>>;

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
            Look::Blocking(Box::new(move || Some(check_root(&root, &protected))))
        }
        _ => Look::Ready(None),
    }
}

fn patched(queue: &Queue, patch: &Map<String, Value>, root: Root) -> PatchedConfig {
    // It was looked at whenever it is asked for.
    let unseen = || Err(RootRefusal::Bad("the directory was not looked at".to_owned()));
    let (config, messages) = queue.config().patched(patch, |_| root.unwrap_or_else(unseen));
    PatchedConfig { config, messages }
}
