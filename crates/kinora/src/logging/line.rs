//! Log lines of requests: each ends with the request's id, so that the `x-request-id` of an answer
//! leads to every line about it. A request that logs nothing costs nothing.

use std::fmt::{self, Write as _};

use kinora_api::RequestId;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// A format of log lines, with the way to add the id.
pub(super) struct WithRequest<F> {
    lines: F,
    /// The field is inserted before this end of a line.
    end: &'static str,
    write: fn(&mut String, RequestId) -> fmt::Result,
}

impl<F> WithRequest<F> {
    /// Lines of text.
    pub(super) fn text(lines: F) -> Self {
        Self {
            lines,
            end: "\n",
            write: |line, id| write!(line, " request={id}"),
        }
    }

    /// Lines of one JSON object each.
    pub(super) fn json(lines: F) -> Self {
        Self {
            lines,
            end: "}\n",
            write: |line, id| write!(line, r#","request":"{id}""#),
        }
    }
}

impl<S, N, F> FormatEvent<S, N> for WithRequest<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some(id) = RequestId::current() else {
            return self.lines.format_event(context, writer, event);
        };
        let mut line = String::new();
        self.lines
            .format_event(context, Writer::new(&mut line), event)?;
        if line.ends_with(self.end) {
            line.truncate(line.len() - self.end.len());
            (self.write)(&mut line, id)?;
            line.push_str(self.end);
        }
        writer.write_str(&line)
    }
}
