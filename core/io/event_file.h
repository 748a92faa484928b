// EventFile: a file that TensorBoard shows, written while it is looked at.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "halftone/core/io/event.h"
#include "halftone/core/io/file_handle.h"

namespace halftone::io {

// Paths of the files in `folder` with "tfevents" in their names, by which TensorBoard knows them,
// in the order in which it reads them. Errors: NotFound, InvalidArgument (no folder),
// FailedPrecondition (the system refuses).
absl::StatusOr<std::vector<std::string>> ListEventFiles(const std::string& folder);

class EventFile {
 public:
  // Makes the folder, where it is not there, and in it a file of a new name, which TensorBoard
  // reads behind all those that are there. Errors: InvalidArgument, FailedPrecondition, each with
  // the path.
  static absl::StatusOr<EventFile> Create(const std::string& folder);

  EventFile(EventFile&&) = default;
  EventFile& operator=(EventFile&&) = delete;
  // Writes what Append has kept.
  ~EventFile();

  // Keeps the event, and writes what is kept when a second has passed or 64 KiB have come together:
  // whole records by one call of the system, so that the file is readable whatever ends the
  // program. Errors: FailedPrecondition (the disk is full, ...); nothing more is to be appended
  // then.
  absl::Status Append(const Event& event);
  // Hands what is kept to the system now. Not to the disk: only an end of the system loses it.
  absl::Status Flush();

  const std::string& path() const { return file_.path(); }

 private:
  explicit EventFile(FileHandle file);

  FileHandle file_;
  pid_t owner_;  // a child of fork() has the descriptor and what is kept, and writes none of it
  std::string record_, kept_;
  std::chrono::steady_clock::time_point written_;
};

}  // namespace halftone::io
