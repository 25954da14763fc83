//! What is not read again, and what must be.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};

use proptest::prelude::*;

use super::super::filesystem::TMPFS;
use super::*;
use crate::disk::{FaultHook, Op};
use crate::sys::testing::SharedMapping;

/// Ten directories with three files each, and one in the root.
fn small_project(fixture: &Fixture) {
    fixture.write("top", "top");
    for dir in 0..10 {
        for file in 0..3 {
            fixture.write(&format!("d{dir}/sub/f{file}"), format!("{dir} {file}"));
        }
    }
}

#[test]
fn a_tree_that_did_not_change_is_neither_read_nor_written() {
    let mut fixture = Fixture::new();
    small_project(&fixture);
    let (first, _) = fixture.publish();
    let (second, puts) = fixture.publish();
    assert_eq!((puts, &first.manifest, first.id), (0, &second.manifest, second.id));
    fixture.reopen_cache(&second);
    let (third, puts) = fixture.publish();
    assert_eq!((puts, third.id), (0, first.id));
    assert_eq!(fixture.capture_afresh().id, first.id);
}

#[test]
fn a_changed_file_is_read_and_the_directories_above_it_are_written() {
    let mut fixture = Fixture::new();
    small_project(&fixture);
    fixture.publish();
    fixture.write("d3/sub/f1", "changed");
    let (captured, puts) = fixture.publish();
    // The file, and the nodes of d3/sub, d3 and the root.
    assert_eq!(puts, 4);
    assert_eq!(fixture.bytes(&captured, "d3/sub/f1"), b"changed");
    assert_eq!(fixture.bytes(&captured, "d3/sub/f2"), b"3 2");
    assert_eq!(captured.id, fixture.capture_afresh().id);
    assert_eq!(fixture.publish().1, 0);
}

#[test]
fn every_change_to_a_tree_is_seen() {
    type Step = (&'static str, fn(&Fixture));
    let steps: [Step; 12] = [
        ("add a file", |f| f.write("d1/sub/new", "x")),
        ("add a first file", |f| f.write("d1/sub/a", "x")),
        ("remove a file", |f| fs::remove_file(f.at("d2/sub/f0")).unwrap()),
        ("remove the last file", |f| fs::remove_file(f.at("d2/sub/f2")).unwrap()),
        ("rename a file", |f| fs::rename(f.at("d3/sub/f0"), f.at("d3/sub/g0")).unwrap()),
        ("rename a directory", |f| fs::rename(f.at("d4"), f.at("e4")).unwrap()),
        ("change a mode", |f| set_mode(&f.at("d5/sub/f0"), 0o600)),
        ("change a directory's mode", |f| set_mode(&f.at("d5/sub"), 0o700)),
        ("swap a file for a directory", |f| {
            fs::remove_file(f.at("top")).unwrap();
            fs::create_dir(f.at("top")).unwrap();
        }),
        ("swap a directory for a link", |f| {
            fs::remove_dir_all(f.at("d6")).unwrap();
            std::os::unix::fs::symlink("d7", f.at("d6")).unwrap();
        }),
        ("write the same bytes again", |f| f.write("d8/sub/f0", "8 0")),
        ("exchange two directories", |f| {
            fs::rename(f.at("d8"), f.at("tmp")).unwrap();
            fs::rename(f.at("d9"), f.at("d8")).unwrap();
            fs::rename(f.at("tmp"), f.at("d9")).unwrap();
        }),
    ];
    let mut fixture = Fixture::new();
    small_project(&fixture);
    fixture.publish();
    for (what, step) in steps {
        step(&fixture);
        let (captured, _) = fixture.publish();
        let afresh = fixture.capture_afresh();
        assert_eq!((captured.manifest, captured.id), (afresh.manifest, afresh.id), "{what}");
        assert_eq!(fixture.publish().1, 0, "{what}");
    }
}

#[test]
fn a_directory_of_thousands_of_names_is_compared_in_halves_that_fit() {
    let mut fixture = Fixture::new();
    for n in 0..6000 {
        if n % 100 == 50 {
            fixture.write(&format!("{n:04}/file"), n.to_string());
        } else {
            fixture.write(&format!("{n:04}"), "");
        }
    }
    let (first, _) = fixture.publish();
    assert_eq!(first.manifest.entries, 6060);
    let names: Vec<_> =
        Tree::new(&fixture.objects, first.manifest.root).entries().map(|e| e.unwrap().name).collect();
    assert!(names.len() == 6000 && names.is_sorted());
    fixture.reopen_cache(&first);
    assert_eq!(fixture.publish().1, 0);
    let steps: [fn(&Fixture); 5] = [
        |f| f.write("0001", "low"),
        |f| f.write("5001", "high"),
        |f| {
            (2990..3010)
                .filter(|n| n % 100 != 50)
                .for_each(|n| fs::remove_file(f.at(&format!("{n:04}"))).unwrap())
        },
        |f| f.write("5950/file", "in a directory"),
        |f| f.write("0000-new", ""),
    ];
    for step in steps {
        step(&fixture);
        let (captured, _) = fixture.publish();
        assert_eq!(captured.id, fixture.capture_afresh().id);
        assert_eq!(fixture.publish().1, 0);
    }
}

#[test]
fn a_store_through_a_mapping_after_a_checkpoint_is_in_the_next_one() {
    let mut fixture = Fixture::new();
    fixture.write("mapped", [0; 4096]);
    let file = fs::File::options().read(true).write(true).open(fixture.at("mapped")).unwrap();
    let mapping = SharedMapping::new(&file);
    drop(file);
    mapping.store(0, 1);
    let (first, _) = fixture.publish();
    assert_eq!(fixture.bytes(&first, "mapped")[..2], [1, 0]);
    let before = fs::metadata(fixture.at("mapped")).unwrap();
    mapping.store(1, 2);
    let after = fs::metadata(fixture.at("mapped")).unwrap();
    let (second, _) = fixture.publish();
    assert_eq!(fixture.bytes(&second, "mapped")[..2], [1, 2]);
    // That is what makes it hard: nobody who looks at times can see it. On an overlay the file was synced meanwhile.
    let seen = before.modified().unwrap() != after.modified().unwrap();
    assert_eq!(seen, crate::sys::is_overlay(fs::File::open(fixture.ws()).unwrap()).unwrap());
    drop(mapping);
    fixture.publish();
    assert_eq!(fixture.publish().1, 0, "once nobody can write to it any more it is not read again");
}

#[test]
fn a_store_in_memory_that_nothing_shows_is_in_the_next_checkpoint() {
    let shared_memory = Path::new("/dev/shm");
    let is_in_memory = rustix::fs::statfs(shared_memory).is_ok_and(|found| found.f_type as u64 == TMPFS);
    let Some(dir) = is_in_memory.then(|| tempfile::tempdir_in(shared_memory).ok()).flatten() else {
        cofferdam_tests::skipped(format_args!("{} is no tmpfs to write to", shared_memory.display()));
        return;
    };
    let mut fixture = Fixture::within(dir);
    fixture.write("mapped", [0; 4096]);
    let (first, _) = fixture.publish();
    assert_eq!(fixture.bytes(&first, "mapped")[0], 0);
    let times = |fixture: &Fixture| {
        let stat = fs::metadata(fixture.at("mapped")).unwrap();
        (stat.mtime(), stat.mtime_nsec(), stat.ctime(), stat.ctime_nsec())
    };
    let before = times(&fixture);
    let file = fs::File::options().read(true).write(true).open(fixture.at("mapped")).unwrap();
    let mapping = SharedMapping::new(&file);
    assert_eq!(mapping.load(0), 0);
    mapping.store(0, 1);
    drop((mapping, file));
    assert_eq!(times(&fixture), before, "that is what makes it hard");
    let (second, _) = fixture.publish();
    assert_eq!(fixture.bytes(&second, "mapped")[0], 1);
}

#[test]
fn a_file_that_somebody_has_open_for_writing_is_read_every_time() {
    let mut fixture = Fixture::new();
    fixture.write("log", "x");
    let writer = fs::File::options().append(true).open(fixture.at("log")).unwrap();
    let (first, _) = fixture.publish();
    let (second, puts) = fixture.publish();
    assert_eq!((first.id, puts), (second.id, 2), "the file and its directory, both known to the store");
    drop(writer);
    fixture.publish();
    assert_eq!(fixture.publish().1, 0);
}

#[test]
fn a_file_changed_a_moment_before_it_was_read_is_read_again() {
    let mut fixture = Fixture::new();
    fixture.write("file", "x");
    let written = fs::metadata(fixture.at("file")).unwrap();
    // The clock stands still in the tick in which the file was written.
    let now = WallTime(written.mtime() * 1_000_000_000 + written.mtime_nsec());
    struct Stopped(WallTime);
    impl Clock for Stopped {
        fn wall(&self) -> WallTime {
            self.0
        }
        fn monotonic(&self) -> std::time::Duration {
            std::time::Duration::ZERO
        }
    }
    let clock = Stopped(now);
    let root = Root::open(&fixture.ws()).unwrap();
    for expected in [2, 2] {
        let before = fixture.objects.puts();
        let (peer, sink, ignore) = (&fixture.peer, &fixture.objects, &fixture.ignore);
        let work = Capture { root: &root, peer, sink, clock: &clock, ignore };
        let captured = capture_on(&work, (fixture.filesystem)(&root), &mut fixture.cache).unwrap();
        fixture.cache.commit(&captured.id);
        assert_eq!(fixture.objects.puts() - before - 1, expected);
    }
    fixture.clock = Later(1_000_000_000);
    fixture.publish();
    assert_eq!(fixture.publish().1, 0);
}

#[test]
fn what_was_not_committed_is_forgotten() {
    let mut fixture = Fixture::new();
    small_project(&fixture);
    let first = fixture.capture();
    let before = fixture.objects.puts();
    let second = fixture.capture();
    assert_eq!(first.id, second.id);
    assert!(fixture.objects.puts() - before > 30, "everything is read again");
    fixture.cache.commit(&second.id);
    assert_eq!(fixture.publish().1, 0);
}

#[test]
fn a_cache_is_not_used_for_another_manifest_than_its_own() {
    let mut fixture = Fixture::new();
    small_project(&fixture);
    let (first, all) = fixture.publish();
    fixture.write("top", "changed");
    let (second, _) = fixture.publish();
    fixture.reopen_cache(&first);
    let (again, puts) = fixture.publish();
    assert_eq!((again.id, puts), (second.id, all));
    fixture.cache = StatCache::open(&Disk::default(), &fixture.cache_file(), None, fixture.boot);
    assert_eq!(fixture.publish().1, all);
}

#[test]
fn a_cache_is_not_used_in_another_boot_than_its_own() {
    let mut fixture = Fixture::new();
    small_project(&fixture);
    let (first, all) = fixture.publish();
    fixture.reopen_cache(&first);
    assert_eq!(fixture.publish().1, 0);
    // The last of them is the first again: no cache comes back to life.
    for boot in [Some(BootId([2; 16])), None, Some(BootId([1; 16]))] {
        fixture.boot = boot;
        fixture.reopen_cache(&first);
        let (again, puts) = fixture.publish();
        assert_eq!((again.id, puts), (first.id, all), "{boot:?}");
    }
    fixture.reopen_cache(&first);
    assert_eq!(fixture.publish().1, 0);
}

#[test]
fn a_directory_that_was_away_is_read_again() {
    let mut fixture = Fixture::new();
    small_project(&fixture);
    fixture.publish();
    let away = fixture.dir.path().join("away");
    fs::rename(fixture.at("d1"), &away).unwrap();
    let (without, _) = fixture.publish();
    // Nothing protects its objects now.
    fixture.objects = MemoryObjects::new();
    fixture.capture_afresh();
    fs::rename(&away, fixture.at("d1")).unwrap();
    for reopened in [false, true] {
        if reopened {
            fixture.reopen_cache(&without);
        }
        let captured = fixture.capture();
        assert_eq!(fixture.bytes(&captured, "d1/sub/f0"), b"1 0");
    }
}

#[test]
fn the_file_of_a_cache_does_not_grow_without_end() {
    let mut fixture = Fixture::new();
    for file in 0..500 {
        fixture.write(&format!("d/{file:0>200}"), "");
    }
    let mut longest = 0;
    for round in 0..40 {
        fixture.write("d/changing", round.to_string());
        let (captured, _) = fixture.publish();
        longest = longest.max(fs::metadata(fixture.cache_file()).unwrap().len());
        if round % 10 == 9 {
            fixture.reopen_cache(&captured);
            assert_eq!(fixture.publish().1, 0);
        }
    }
    let record = 500 * 200;
    assert!((2 * record..20 * record).contains(&longest), "{longest}");
    assert!(!fixture.dir.path().join("cache.new").exists());
}

#[test]
fn a_cache_that_cannot_be_written_costs_a_reading_and_nothing_else() {
    #[derive(Debug)]
    struct Full;
    impl FaultHook for Full {
        fn before(&self, op: Op) -> std::io::Result<()> {
            if op == Op::Write { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }
        fn step(&self, _: &str) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut fixture = Fixture::new();
    small_project(&fixture);
    let disk = Disk::with_faults(std::sync::Arc::new(Full));
    fixture.cache = StatCache::open(&disk, &fixture.cache_file(), None, fixture.boot);
    let (first, all) = fixture.publish();
    assert_eq!(fixture.publish().1, all);
    fixture.reopen_cache(&first);
    assert_eq!(fixture.publish().1, all);
    assert_eq!(fixture.publish().1, 0);
}

#[test]
fn a_record_that_says_nothing_new_is_not_written_again() {
    let mut fixture = Fixture::new();
    fixture.write("log", "x");
    let _writer = fs::File::options().append(true).open(fixture.at("log")).unwrap();
    fixture.publish();
    let before = fs::metadata(fixture.cache_file()).unwrap().len();
    fixture.publish();
    assert_eq!(fs::metadata(fixture.cache_file()).unwrap().len(), before);
}

#[test]
fn a_damaged_cache_changes_no_snapshot() {
    let mut fixture = Fixture::new();
    small_project(&fixture);
    fixture.publish();
    fixture.write("d3/sub/f1", "changed");
    let (captured, _) = fixture.publish();
    let sound = fs::read(fixture.cache_file()).unwrap();
    let fixture = std::sync::Mutex::new(fixture);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let damage = (0..sound.len(), any::<u8>(), any::<bool>());
    let result = runner.run(&damage, |(at, byte, cut)| {
        let mut damaged = sound.clone();
        if cut {
            damaged.truncate(at);
        } else {
            damaged[at] ^= byte;
        }
        let mut fixture = fixture.lock().unwrap();
        fs::write(fixture.cache_file(), &damaged).unwrap();
        fixture.reopen_cache(&captured);
        let again = fixture.capture();
        prop_assert_eq!(again.id, captured.id);
        Ok(())
    });
    result.unwrap();
}

#[test]
fn a_damaged_record_is_written_again() {
    let mut fixture = Fixture::new();
    fixture.write("file", "x");
    let (captured, _) = fixture.publish();
    let mut bytes = fs::read(fixture.cache_file()).unwrap();
    let at = bytes.windows(4).position(|four| four == b"file").unwrap();
    bytes[at] ^= 1;
    fs::write(fixture.cache_file(), &bytes).unwrap();
    fixture.reopen_cache(&captured);
    assert!(fixture.publish().1 > 0);
    assert_eq!(fixture.publish().1, 0);
}

#[test]
fn a_hole_punched_through_a_record_is_noticed() {
    let mut fixture = Fixture::new();
    small_project(&fixture);
    let (captured, all) = fixture.publish();
    let file = fs::File::options().write(true).open(fixture.cache_file()).unwrap();
    let len = file.metadata().unwrap().len();
    file.write_all_at(&vec![0; len as usize / 2], len / 4).unwrap();
    fixture.reopen_cache(&captured);
    let (again, puts) = fixture.publish();
    assert_eq!((again.id, puts), (captured.id, all));
}
