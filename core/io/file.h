// Whole files, read with a bound and written so that a reader never sees half of one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "halftone/core/status.h"

namespace halftone::io {

class FileHandle;

// Errors: NotFound, InvalidArgument (not a regular file), ResourceExhausted (more than `max_bytes`,
// found before anything is allocated), FailedPrecondition (the system refuses), each with the path.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes);

// Writes to a temporary file beside `path`, syncs it and renames it over `path`, so that after a
// crash either the old file or the new one is there. Errors: InvalidArgument (something at `path`
// that is not a regular file, a NUL byte in it), NotFound (no such folder), FailedPrecondition (the
// system refuses), each with path and reason.
absl::Status WriteFileAtomically(const std::string& path, const std::string& contents);
// The same for contents that are too large to be made twice: `write` is called once and its error
// is the result.
absl::Status WriteFileAtomically(const std::string& path,
                                 const std::function<absl::Status(FileHandle&)>& write);

// The part of `path` before its last '/': "." if there is none.
std::string DirectoryOf(const std::string& path);

}  // namespace halftone::io
