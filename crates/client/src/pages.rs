//! Lists of the project's tasks and files, page by page.

use std::collections::VecDeque;

use hyper::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::error::Error;
use crate::video::Video;

/// Maximum number of items per page.
const LIMIT_MAX: u32 = 100;

/// An iterator over the tasks of the key's project; reads pages as needed.
pub type VideoPages = Pages<Video>;

/// An iterator over items of the key's project; reads pages as needed.
#[derive(Debug)]
pub struct Pages<T> {
    client: Client,
    /// The part of the path after `/v1`.
    list: &'static str,
    limit: u32,
    ascending: bool,
    page: VecDeque<T>,
    after: Option<String>,
    ended: bool,
}

#[derive(Deserialize)]
struct Page<T> {
    data: VecDeque<T>,
    last_id: Option<String>,
    has_more: bool,
}

impl Client {
    /// The project's tasks, newest first.
    ///
    /// ```no_run
    /// # async fn example(client: kinora_client::Client) -> Result<(), kinora_client::Error> {
    /// let mut tasks = client.list();
    /// while let Some(task) = tasks.next().await? {
    ///     println!("{} {}", task.id, task.status.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(&self) -> VideoPages {
        Pages::new(self, "videos")
    }
}

impl<T: DeserializeOwned> Pages<T> {
    pub(crate) fn new(client: &Client, list: &'static str) -> Self {
        Self {
            client: client.clone(),
            list,
            limit: LIMIT_MAX,
            ascending: false,
            page: VecDeque::new(),
            after: None,
            ended: false,
        }
    }

    /// Oldest first.
    #[must_use]
    pub fn ascending(mut self) -> Self {
        self.ascending = true;
        self
    }

    /// Sets the number of items per page, 1 to 100.
    #[must_use]
    pub fn page_size(mut self, items: u32) -> Self {
        self.limit = items.clamp(1, LIMIT_MAX);
        self
    }

    /// Only items after this one, in the order of the list.
    #[must_use]
    pub fn after(mut self, id: impl Into<String>) -> Self {
        self.after = Some(id.into());
        self
    }

    /// The next item; `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<T>, Error> {
        while self.page.is_empty() && !self.ended {
            self.turn().await?;
        }
        Ok(self.page.pop_front())
    }

    async fn turn(&mut self) -> Result<(), Error> {
        let mut call = self
            .client
            .to(Method::GET, &[self.list])
            .query("limit", &self.limit.to_string())
            .query("order", if self.ascending { "asc" } else { "desc" });
        if let Some(after) = &self.after {
            call = call.query("after", after);
        }
        let page: Page<T> = self.client.call(&call).await?.json()?;
        // A page may be short, even empty, while more follow; a page that does not advance would
        // repeat for ever.
        self.ended = !page.has_more || page.last_id.is_none() || page.last_id == self.after;
        self.after = page.last_id;
        self.page = page.data;
        Ok(())
    }
}
