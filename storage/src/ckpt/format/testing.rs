//! A store in memory, for tests of everything that writes or reads objects.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::{ObjectId, ObjectKind, ObjectSink, ObjectSource};
use crate::ckpt::error::{Error, Result};

type Stored = (ObjectKind, Arc<[u8]>);

/// Objects by id; counts how often it is asked.
#[derive(Debug, Default)]
pub(crate) struct MemoryObjects {
    objects: Mutex<HashMap<ObjectId, Stored>>,
    gets: AtomicUsize,
    puts: AtomicUsize,
}

impl MemoryObjects {
    /// An empty store.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// How often an object was read so far.
    pub(crate) fn gets(&self) -> usize {
        self.gets.load(Ordering::Relaxed)
    }

    /// How often an object was put so far, known ones included.
    pub(crate) fn puts(&self) -> usize {
        self.puts.load(Ordering::Relaxed)
    }

    /// How many objects there are.
    pub(crate) fn len(&self) -> usize {
        self.objects.lock().unwrap().len()
    }

    /// Loses an object, as a damaged store does.
    pub(crate) fn lose(&self, id: &ObjectId) {
        self.objects.lock().unwrap().remove(id);
    }
}

impl ObjectSink for MemoryObjects {
    fn put(&self, kind: ObjectKind, bytes: &[u8]) -> Result<ObjectId> {
        self.puts.fetch_add(1, Ordering::Relaxed);
        let id = ObjectId::of(kind, bytes);
        self.objects.lock().unwrap().entry(id).or_insert_with(|| (kind, bytes.into()));
        Ok(id)
    }
}

impl ObjectSource for MemoryObjects {
    fn get(&self, kind: ObjectKind, id: &ObjectId) -> Result<Arc<[u8]>> {
        self.gets.fetch_add(1, Ordering::Relaxed);
        match self.objects.lock().unwrap().get(id) {
            Some((stored, bytes)) if *stored == kind => Ok(bytes.clone()),
            _ => Err(Error::Corrupt(format!("object {id} is missing"))),
        }
    }

    fn has(&self, id: &ObjectId) -> Result<bool> {
        Ok(self.objects.lock().unwrap().contains_key(id))
    }
}
