#include "halftone/graph/nn/run_log.h"

#include <chrono>
#include <cmath>
#include <optional>
#include <vector>

#include "halftone/core/io/event_file.h"
#include "halftone/graph/nn/graph.h"
#include "halftone/graph/nn/graph_numbers.h"
#include "halftone/graph/nn/notes.h"

namespace halftone::nn {
namespace {

using Clock = std::chrono::steady_clock;

double WallTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

struct RunLog::Impl {
  Impl(const Graph& logged, const RunLogOptions& opts)
      : graph(logged),
        options(opts),
        speed_tag(Concat("speed/", opts.items, "_per_second")),
        numbers(logged) {}

  // Keeps the first error and tells it.
  void Fail(const absl::Status& error) {
    if (!status.ok()) return;
    status = error;
    PrintNote("run log: " + Message(error));
  }

  void Add(std::string_view tag, double value) {
    event.scalars.push_back({tag, static_cast<float>(value)});
  }

  // Writes what was added as numbers of the last training step. Where it is the first entry, what an earlier
  // run logged is void from that step on, or where `beside` it, an evaluation after a step that the
  // earlier run took, from the next one on.
  void WriteEvent(bool beside) {
    event.wall_time = WallTime();
    event.step = static_cast<int64_t>(graph.run_count());
    if (!begun) {
      io::Event start;
      start.wall_time = event.wall_time;
      start.step = event.step + (beside ? 1 : 0);
      start.starts_session = true;
      begun = true;
      if (!Append(start)) return;
    }
    Append(event);
  }

  bool Append(const io::Event& added) {
    const absl::Status written = file->Append(added);
    if (!written.ok()) Close(written);
    return written.ok();
  }

  void Close(const absl::Status& error) {
    Fail(Annotate(error, "nothing is logged any more: "));
    file.reset();
  }

  const Graph& graph;
  const RunLogOptions options;
  const std::string speed_tag;
  GraphNumbers numbers;
  absl::Status status;
  std::optional<io::EventFile> file;  // none: nothing is written
  io::Event event;
  bool begun = false;
  int64_t steps = 0, items = 0;  // since the last entry
  std::optional<Clock::time_point> last_entry;
};

RunLog::RunLog() = default;

RunLog::RunLog(const Graph& graph, const std::string& folder, const RunLogOptions& options) {
  if (folder.empty()) return;
  impl_ = std::make_unique<Impl>(graph, options);
  if (options.every < 1) {
    impl_->Close(InvalidArgument("every = ", options.every, "; expected 1 or more"));
    return;
  }
  absl::StatusOr<io::EventFile> file = io::EventFile::Create(folder);
  if (file.ok()) {
    impl_->file.emplace(*std::move(file));
  } else {
    impl_->Close(file.status());
  }
}

RunLog::RunLog(RunLog&&) noexcept = default;
RunLog& RunLog::operator=(RunLog&&) noexcept = default;
RunLog::~RunLog() { flush(); }

void RunLog::add_step(absl::Span<const Number> numbers, int64_t items) {
  if (impl_ == nullptr || !impl_->file.has_value()) return;
  Impl& log = *impl_;
  log.items += items;
  if (++log.steps < log.options.every) return;
  log.event.scalars.clear();
  for (const Number& number : numbers) {
    if (number.tensor == nullptr) {
      log.Add(number.tag, number.value);
    } else if (number.tensor->defined() && number.tensor->num_elements() == 1) {
      log.Add(number.tag, number.tensor->item() * number.factor);
    } else {
      log.Fail(InvalidArgument(
          number.tag, " is left out: got ",
          number.tensor->defined() ? number.tensor->TypeString() : "an undefined tensor",
          "; expected one element"));
    }
  }
  log.numbers.ForEach([&log](std::string_view tag, double value) { log.Add(tag, value); });
  const Clock::time_point now = Clock::now();
  if (log.last_entry.has_value() && log.items > 0) {
    const double seconds = std::chrono::duration<double>(now - *log.last_entry).count();
    if (seconds > 0) log.Add(log.speed_tag, static_cast<double>(log.items) / seconds);
  }
  log.last_entry = now;
  log.steps = 0;
  log.items = 0;
  log.WriteEvent(/*beside=*/false);
}

void RunLog::add_scalar(std::string_view tag, double value) {
  if (impl_ == nullptr || !impl_->file.has_value()) return;
  impl_->event.scalars.clear();
  impl_->Add(tag, value);
  impl_->WriteEvent(/*beside=*/true);
}

void RunLog::skip_time() {
  if (impl_ == nullptr) return;
  // Steps since the last entry are left out with their time: what they took is not known.
  impl_->items = 0;
  impl_->last_entry = Clock::now();
}

void RunLog::flush() {
  if (impl_ == nullptr || !impl_->file.has_value()) return;
  const absl::Status written = impl_->file->Flush();
  if (!written.ok()) impl_->Close(written);
}

const absl::Status& RunLog::status() const {
  static const auto* const ok = new absl::Status();
  return impl_ == nullptr ? *ok : impl_->status;
}

std::string RunLog::path() const {
  return impl_ == nullptr || !impl_->file.has_value() ? "" : impl_->file->path();
}

}  // namespace halftone::nn
