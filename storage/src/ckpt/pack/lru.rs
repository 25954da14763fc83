//! A bounded cache that forgets what was not used for longest.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Values by key, up to a total weight.
#[derive(Debug)]
pub(super) struct Lru<K, V> {
    capacity: usize,
    weight: usize,
    /// Counts uses; the higher, the later.
    clock: u64,
    entries: HashMap<K, Cached<V>>,
    by_use: BTreeMap<u64, K>,
}

#[derive(Debug)]
struct Cached<V> {
    value: V,
    weight: usize,
    used: u64,
}

impl<K: Copy + Eq + Hash, V: Clone> Lru<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, weight: 0, clock: 0, entries: HashMap::new(), by_use: BTreeMap::new() }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<V> {
        let cached = self.entries.get_mut(key)?;
        self.by_use.remove(&cached.used);
        self.clock += 1;
        cached.used = self.clock;
        self.by_use.insert(cached.used, *key);
        Some(cached.value.clone())
    }

    /// Keeps a value; one that would take more than a quarter of the room is not kept.
    pub(super) fn insert(&mut self, key: K, value: V, weight: usize) {
        self.remove(&key);
        if weight > self.capacity / 4 {
            return;
        }
        while self.weight + weight > self.capacity
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.remove(&oldest);
        }
        self.clock += 1;
        self.weight += weight;
        self.by_use.insert(self.clock, key);
        self.entries.insert(key, Cached { value, weight, used: self.clock });
    }

    pub(super) fn forget(&mut self, which: impl Fn(&K) -> bool) {
        let keys: Vec<K> = self.entries.keys().filter(|key| which(key)).copied().collect();
        keys.iter().for_each(|key| self.remove(key));
    }

    fn remove(&mut self, key: &K) {
        if let Some(cached) = self.entries.remove(key) {
            self.by_use.remove(&cached.used);
            self.weight -= cached.weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut cache = Lru::new(8);
        for key in 0..4 {
            cache.insert(key, key * 10, 2);
        }
        assert_eq!(cache.get(&0), Some(0));
        cache.insert(4, 40, 2);
        assert_eq!(cache.get(&1), None);
        assert_eq!(
            (cache.get(&0), cache.get(&2), cache.get(&3), cache.get(&4)),
            (Some(0), Some(20), Some(30), Some(40))
        );
        cache.insert(2, 21, 1);
        assert_eq!(cache.weight, 7);
    }

    #[test]
    fn one_big_value_does_not_push_out_everything_else() {
        let mut cache = Lru::new(8);
        cache.insert("small", 1, 2);
        cache.insert("big", 2, 3);
        assert_eq!((cache.get(&"small"), cache.get(&"big")), (Some(1), None));
    }

    #[test]
    fn forgetting_frees_the_room() {
        let mut cache = Lru::new(8);
        cache.insert(1, 1, 2);
        cache.insert(2, 2, 2);
        cache.forget(|key| *key == 1);
        assert_eq!((cache.get(&1), cache.get(&2), cache.weight, cache.by_use.len()), (None, Some(2), 2, 1));
    }
}
