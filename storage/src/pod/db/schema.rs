//! The tables as diesel sees them. What they mean stands in `migrations/pod`.

diesel::table! {
    tasks (row) {
        row -> BigInt,
        id -> Text,
        session_id -> Text,
        main_session_id -> Text,
        label -> Text,
        description -> Text,
        status -> Text,
        subdir -> Text,
        task_dir -> Text,
        sandbox_root -> Text,
        created_at -> BigInt,
        queued_at -> BigInt,
        started_at -> BigInt,
        ended_at -> BigInt,
        turns -> BigInt,
        timeout_ms -> BigInt,
        allow -> Text,
        available_tools -> Text,
        preset_id -> Text,
        model -> Text,
        sandbox_mode -> Text,
        sandbox_probe -> Text,
        fs_denied -> Bool,
        last_text -> Text,
        error -> Text,
        legacy -> Bool,
        turn_deadline -> BigInt,
        open_turn -> Nullable<BigInt>,
        last_turn -> Nullable<BigInt>,
        deadline_passed -> Bool,
        cancel_requested -> Bool,
        reattached_from -> Nullable<Text>,
    }
}

diesel::table! {
    audit (key) {
        key -> BigInt,
        task -> Text,
        at -> BigInt,
        what -> Text,
    }
}

diesel::table! {
    legacy_notes (task) {
        task -> Text,
        notes -> Text,
    }
}

diesel::table! {
    legacy_log (task, position) {
        task -> Text,
        position -> BigInt,
        seq -> BigInt,
        event -> Text,
        kind -> Text,
        time -> BigInt,
        text -> Text,
        think -> Text,
    }
}

diesel::table! {
    config (key) {
        key -> Text,
        value -> Text,
    }
}

diesel::table! {
    exports (key) {
        key -> BigInt,
        id -> Text,
        task -> Text,
        label -> Text,
        at -> BigInt,
        target_dir -> Text,
        mode -> Text,
        conflict -> Text,
        status -> Text,
        undone_at -> BigInt,
        legacy -> Bool,
        notes -> Text,
    }
}

diesel::table! {
    export_items (export, position) {
        export -> BigInt,
        position -> BigInt,
        status -> Text,
        src -> Text,
        dst -> Text,
        bytes -> BigInt,
        hash -> Text,
        existed -> Bool,
        backup_path -> Text,
        message -> Text,
    }
}

diesel::table! {
    remembered_targets (session) {
        session -> Text,
        target_dir -> Text,
        at -> BigInt,
    }
}

diesel::table! {
    meta (key) {
        key -> Text,
        value -> Text,
    }
}

diesel::joinable!(export_items -> exports (export));
diesel::allow_tables_to_appear_in_same_query!(exports, export_items);
