//! Many at one session at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cofferdam_protocol::session::Envelope;
use cofferdam_tests::files::names;

use super::site::{ARRAY, Site, id, put};
use super::talk::{fresh, said, temporary, texts};
use crate::disk::Disk;
use crate::session::lock::Lock;
use crate::session::{Error, SessionStore};

const WRITERS: u64 = 8;
const TURNS: u64 = 12;

/// Says `TURNS` things, each as soon as nobody else is in the way. Returns how often somebody was.
fn write(store: &SessionStore, writer: u64) -> u64 {
    let mut lost = 0;
    for turn in 0..TURNS {
        loop {
            let mut talk = store.load(&id(1)).unwrap();
            talk.messages.push(said("user", &format!("{writer}: {turn}")));
            match store.persist(&mut talk) {
                Ok(()) => break,
                Err(Error::Conflict(_)) => lost += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }
    lost
}

/// Eight writers with a store each, and a reader beside them.
fn everybody_gets_a_word_in(site: &Site) -> Envelope {
    let done = AtomicBool::new(false);
    let reads = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let store = site.store();
            let mut seen: Vec<String> = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let talk = store.load(&id(1)).unwrap();
                let now = texts(&talk);
                assert!(now.len() >= seen.len() && now.iter().zip(&seen).all(|(now, before)| now == before));
                seen = now.into_iter().map(str::to_owned).collect();
                reads.fetch_add(1, Ordering::Relaxed);
            }
        });
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write(&site.store(), writer))).collect();
        let ends: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        ends.into_iter().for_each(|end| _ = end.unwrap());
    });
    assert!(reads.load(Ordering::Relaxed) > 0);
    assert_eq!(temporary(site), [""; 0]);
    let talk = site.store().load(&id(1)).unwrap();
    let mut said: Vec<_> = texts(&talk)[1..].to_vec();
    said.sort_unstable();
    let mut expected: Vec<_> =
        (0..WRITERS).flat_map(|writer| (0..TURNS).map(move |turn| format!("{writer}: {turn}"))).collect();
    expected.sort_unstable();
    assert_eq!(said, expected);
    talk
}

#[test]
fn of_eight_writers_every_loser_knows_and_no_message_is_lost() {
    let site = Site::new();
    site.store().persist(&mut fresh(&site, &id(1))).unwrap();
    let talk = everybody_gets_a_word_in(&site);
    assert_eq!(talk.generation, 1 + WRITERS * TURNS);
}

#[test]
fn a_conversation_is_moved_once_whoever_comes_first() {
    let site = Site::new();
    put(&site.legacy(), &id(1), ARRAY, 77);
    let talk = everybody_gets_a_word_in(&site);
    assert_eq!((talk.generation, talk.created_at_ms), (WRITERS * TURNS, 77_000));
    assert_eq!(names(site.legacy()), [""; 0]);
}

#[test]
fn of_those_who_begin_the_same_conversation_one_does() {
    let site = Site::new();
    let begun = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..WRITERS).map(|_| scope.spawn(|| site.store().persist(&mut fresh(&site, &id(1))))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(begun.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{begun:?}");
    assert!(begun.iter().all(|outcome| matches!(outcome, Ok(()) | Err(Error::Conflict(_)))), "{begun:?}");
}

#[test]
fn a_lock_never_has_two_holders_also_where_holders_remove_it() {
    let site = Site::new();
    let disk = Disk::default();
    let dir = site.store().scope.for_writing(&disk).unwrap().0;
    let holders = AtomicU64::new(0);
    let held = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                for round in 0..2_000 {
                    match Lock::take(&disk, &dir, &id(1)) {
                        Ok(lock) => {
                            assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                            std::thread::yield_now();
                            assert_eq!(holders.fetch_sub(1, Ordering::SeqCst), 1);
                            held.fetch_add(1, Ordering::Relaxed);
                            if round % 2 == 0 {
                                lock.remove(&disk).unwrap();
                            }
                        }
                        Err(Error::Conflict(_)) => std::thread::yield_now(),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    assert!(held.load(Ordering::Relaxed) >= 2_000);
}

#[test]
fn a_conversation_that_is_cleared_while_many_write_it_stays_away() {
    let site = Site::new();
    for round in 0..20 {
        match round % 2 {
            0 => site.store().persist(&mut fresh(&site, &id(1))).unwrap(),
            _ => put(&site.legacy(), &id(1), ARRAY, 77),
        }
        std::thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| {
                    let store = site.store();
                    // Each goes on until it is not there any more.
                    while let Ok(mut talk) = store.load(&id(1)) {
                        match store.persist(&mut talk) {
                            Ok(()) | Err(Error::Conflict(_)) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
            let store = site.store();
            loop {
                let cleared = store.clear(&[id(1).to_string()], &[]);
                match cleared.skipped.first() {
                    None => break,
                    Some((_, Error::Conflict(_))) => {}
                    other => panic!("{other:?}"),
                }
            }
        });
        let gone = site.store().load(&id(1));
        assert!(matches!(gone, Err(Error::NotFound(_))), "round {round}: {gone:?}");
    }
}
