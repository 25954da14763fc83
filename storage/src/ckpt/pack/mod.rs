//! The files in which objects lie: one pack per checkpoint, zstd over blocks of about 256 KiB.
