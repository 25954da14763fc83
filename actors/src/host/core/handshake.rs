//! `initialize`: what the host says, and what it makes of the answer.

use cofferdam_protocol::pod::{
    CORE_VERSION, Initialize, Initialized, PROTOCOL_VERSION, PodErrorCode as Code,
};
use cofferdam_storage::pod::SCHEMA_VERSION;
use serde::Deserialize;
use serde_json::Value;

use super::CoreParts;
use super::failure::Trouble;
use super::standing::Facts;
use crate::pod::Failure;

/// What comes of `initialize`.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The core is there.
    Ready(Facts, Box<Initialized>),
    /// It is there, but of another release; it may have answered all the same.
    Mismatch(Facts, Trouble, Option<Box<Initialized>>),
    /// It cannot work.
    Failed(Trouble),
}

/// What the host says to the core.
pub(super) fn request(parts: &CoreParts, host_pid: Option<u32>) -> Result<Initialize, Trouble> {
    let text = |path: &std::path::Path| match path.to_str() {
        Some(path) => Ok(path.to_owned()),
        None => Err(Trouble {
            code: Code::DbError,
            message: format!("the path {} is not UTF-8; choose another state directory", path.display()),
        }),
    };
    Ok(Initialize {
        protocol: PROTOCOL_VERSION,
        plugin_version: CORE_VERSION.to_owned(),
        db_path: text(&parts.database)?,
        legacy_json_path: parts.legacy.as_deref().map(text).transpose()?,
        host_pid,
        platform: Some(Value::from(match std::env::consts::OS {
            "macos" => "darwin",
            "windows" => "win32",
            os => os,
        })),
        features: Some(vec!["export.progress".to_owned()]),
    })
}

/// What an answer that was read means.
pub(super) fn judge(answer: Result<Initialized, Failure>) -> Verdict {
    match answer {
        Ok(initialized) => {
            let facts = Facts {
                protocol: initialized.protocol,
                schema_version: initialized.schema_version,
                version: initialized.core_version.clone(),
            };
            match difference(&facts) {
                Some(trouble) => Verdict::Mismatch(facts, trouble, Some(Box::new(initialized))),
                None => Verdict::Ready(facts, Box::new(initialized)),
            }
        }
        Err(failure) if matches!(failure.code, Code::ProtocolMismatch | Code::SchemaMismatch) => {
            Verdict::Mismatch(Facts::default(), failure.into(), None)
        }
        Err(failure) => Verdict::Failed(failure.into()),
    }
}

/// The same for an answer that is still text: a core of another release may say who it is and nothing else that can be
/// understood.
pub(super) fn judge_text(answer: Result<&str, Failure>) -> Verdict {
    let text = match answer {
        Ok(text) => text,
        Err(failure) => return judge(Err(failure)),
    };
    let unreadable = match serde_json::from_str(text) {
        Ok(initialized) => return judge(Ok(initialized)),
        Err(error) => error,
    };
    if let Ok(facts) = serde_json::from_str::<Introduction>(text).map(Facts::from)
        && let Some(trouble) = difference(&facts)
    {
        return Verdict::Mismatch(facts, trouble, None);
    }
    Verdict::Failed(Trouble::unavailable(format!("its answer to initialize cannot be read: {unreadable}")))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Introduction {
    protocol: i64,
    #[serde(default)]
    core_version: String,
    #[serde(default)]
    schema_version: i64,
}

impl From<Introduction> for Facts {
    fn from(Introduction { protocol, core_version, schema_version }: Introduction) -> Self {
        Self { protocol, schema_version, version: core_version }
    }
}

/// Why no task may be started with a core that is so (spec §2, §10).
fn difference(facts: &Facts) -> Option<Trouble> {
    let advice = "install host and core of the same release";
    let trouble = |code, message| Some(Trouble { code, message });
    if facts.protocol != PROTOCOL_VERSION {
        let theirs = facts.protocol;
        return trouble(
            Code::ProtocolMismatch,
            format!("the core speaks protocol {theirs}, the host {PROTOCOL_VERSION}; {advice}"),
        );
    }
    if facts.schema_version != SCHEMA_VERSION {
        let theirs = facts.schema_version;
        return trouble(
            Code::SchemaMismatch,
            format!("the core's database has schema {theirs}, the host knows {SCHEMA_VERSION}; {advice}"),
        );
    }
    if facts.version != CORE_VERSION {
        let theirs = &facts.version;
        return trouble(
            Code::ProtocolMismatch,
            format!("the core has version {theirs}, the host needs {CORE_VERSION}; {advice}"),
        );
    }
    None
}
