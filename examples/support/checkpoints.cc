#include "halftone/examples/support/checkpoints.h"

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <map>

#include "halftone/distributed/distributed.h"

namespace halftone::example {
namespace {

constexpr char kRun[] = "run";
constexpr char kEpoch[] = "epoch";
constexpr char kImage[] = "image";

absl::StatusOr<std::string> Find(const std::map<std::string, std::string>& metadata,
                                 const char* key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return InvalidArgument("has no metadata \"", key, "\"");
  return found->second;
}

// A number from 0 that fits T.
template <typename T>
absl::Status ReadNumber(const std::map<std::string, std::string>& metadata, const char* key,
                        T& number) {
  HT_ASSIGN_OR_RETURN(const std::string text, Find(metadata, key));
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && number >= 0) return absl::OkStatus();
  return InvalidArgument("metadata \"", key, "\" is \"", text.substr(0, 40),
                         "\"; expected a number, 0 or more");
}

}  // namespace

absl::Status Checkpoints::CheckNew() const {
  for (const std::string& path : {path_, path_ + ".previous"}) {
    std::error_code error;  // whoever writes tells it
    if (!std::filesystem::is_regular_file(path, error)) continue;
    return absl::AlreadyExistsError(
        Concat(path, " holds another run; expected --resume, or a new name for --checkpoint"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Cursor> Checkpoints::Start(nn::Graph& graph, bool resume) {
  absl::StatusOr<Cursor> cursor = StartAlone(graph, resume);
  HT_RETURN_IF_ERROR(distributed::Agree(cursor.status()));
  return cursor;
}

absl::StatusOr<Cursor> Checkpoints::StartAlone(nn::Graph& graph, bool resume) {
  if (resume && path_.empty()) return InvalidArgument("--resume: expected --checkpoint too");
  if (path_.empty()) return Cursor();
  // The first rank writes.
  if (distributed::Rank() == 0) {
    HT_ASSIGN_OR_RETURN(lock_, runtime::CheckpointLock::Acquire(path_));
  }
  if (resume) return Resume(graph);
  HT_RETURN_IF_ERROR(CheckNew());
  return Cursor();
}

absl::StatusOr<Cursor> Checkpoints::Resume(nn::Graph& graph) {
  std::string note;
  auto checkpoint = runtime::ReadLatestCheckpoint(path_, &note);
  if (absl::IsNotFound(checkpoint.status())) {
    std::fprintf(stderr, "no checkpoint yet: the run starts at the beginning\n");
    return Cursor();
  }
  if (!checkpoint.ok()) return checkpoint.status();
  if (!note.empty()) std::fprintf(stderr, "%s\n", note.c_str());

  const auto read = [&]() -> absl::StatusOr<Cursor> {
    HT_ASSIGN_OR_RETURN(const std::string run, Find(checkpoint->metadata, kRun));
    if (run != run_) {
      return InvalidArgument("was saved by a run with ", run.substr(0, 200), "; this one has ",
                             run_);
    }
    Cursor cursor;
    HT_RETURN_IF_ERROR(ReadNumber(checkpoint->metadata, kEpoch, cursor.epoch));
    HT_RETURN_IF_ERROR(ReadNumber(checkpoint->metadata, kImage, cursor.image));
    HT_ASSIGN_OR_RETURN(const nn::LoadReport report, graph.load_state_dict(checkpoint->tensors));
    for (const std::string& name : report.missing) {
      std::fprintf(stderr, "%s is not in the checkpoint and stays as it is\n", name.c_str());
    }
    for (const std::string& name : report.unexpected) {
      std::fprintf(stderr, "%s of the checkpoint is not used\n", name.c_str());
    }
    return cursor;
  };
  absl::StatusOr<Cursor> cursor = read();
  if (!cursor.ok()) return Annotate(cursor.status(), path_ + ": ");
  saved_ = *cursor;
  if (distributed::Rank() == 0) {
    std::fprintf(stderr, "resumed at epoch %lld, image %lld\n",
                 static_cast<long long>(cursor->epoch) + 1, static_cast<long long>(cursor->image));
  }
  return cursor;
}

absl::Status Checkpoints::AfterStep(nn::Graph& graph, const Cursor& next) {
  return every_ > 0 && ++steps_ % every_ == 0 ? Save(graph, next) : absl::OkStatus();
}

absl::Status Checkpoints::Save(nn::Graph& graph, const Cursor& next) {
  if (path_.empty()) return absl::OkStatus();
  HT_RETURN_IF_ERROR(graph.save_checkpoint(
      path_,
      {{kRun, run_}, {kEpoch, std::to_string(next.epoch)}, {kImage, std::to_string(next.image)}}));
  saved_ = next;
  return absl::OkStatus();
}

absl::Status Checkpoints::WithWhatIsSaved(const absl::Status& status) const {
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      saved_ ? Concat(Message(status), "; saved up to epoch ", saved_->epoch + 1, ", image ",
                      saved_->image, ": go on with --resume")
             : Concat(Message(status), "; nothing of this run is saved, its steps are lost"));
}

}  // namespace halftone::example
