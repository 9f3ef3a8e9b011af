//! The reference store against the suite, with two handles.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kinora_contract::ManualClock;

use super::ReferenceStore;
use crate::Stores;
use crate::conformance::{Harness, Site};

/// Stores by their names.
#[derive(Default)]
struct Named(Mutex<BTreeMap<String, ReferenceStore>>);

#[async_trait]
impl Harness for Named {
    async fn stores(&self, name: &str, clock: Arc<ManualClock>) -> Stores {
        let mut named = self.0.lock().unwrap();
        let store = match named.get(name) {
            Some(store) => store.reopened(clock),
            None => ReferenceStore::new(named.len() as u64, clock),
        };
        named.insert(name.to_owned(), store.clone());
        Stores::of(Arc::new(store))
    }

    async fn open_second(&self, _: &Site, name: &str, clock: Arc<ManualClock>) -> Site {
        let store = self.0.lock().unwrap()[name].clone();
        Site::of(Stores::of(Arc::new(store)), clock)
    }
}

crate::conformance_suite!(Named::default());
