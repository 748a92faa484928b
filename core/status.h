// absl::Status with our error text and the two propagation macros.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "halftone/core/strings.h"

namespace halftone {

// Errors made of parts: InvalidArgument("softmax(%12): axis ", axis, " out of range").
template <typename... Parts>
absl::Status InvalidArgument(const Parts&... parts) {
  return absl::InvalidArgumentError(Concat(parts...));
}
template <typename... Parts>
absl::Status FailedPrecondition(const Parts&... parts) {
  return absl::FailedPreconditionError(Concat(parts...));
}
template <typename... Parts>
absl::Status NotFound(const Parts&... parts) {
  return absl::NotFoundError(Concat(parts...));
}
template <typename... Parts>
absl::Status Unimplemented(const Parts&... parts) {
  return absl::UnimplementedError(Concat(parts...));
}
template <typename... Parts>
absl::Status OutOfRange(const Parts&... parts) {
  return absl::OutOfRangeError(Concat(parts...));
}
template <typename... Parts>
absl::Status ResourceExhausted(const Parts&... parts) {
  return absl::ResourceExhaustedError(Concat(parts...));
}
template <typename... Parts>
absl::Status DataLoss(const Parts&... parts) {
  return absl::DataLossError(Concat(parts...));
}
template <typename... Parts>
absl::Status Internal(const Parts&... parts) {
  return absl::InternalError(Concat(parts...));
}

// The same status (code, payloads) with `prefix`, verbatim, before its message; OK stays OK:
// Annotate(status, "model.cc:42: ").
absl::Status Annotate(const absl::Status& status, const std::string& prefix);
inline std::string Message(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

}  // namespace halftone

#define HT_RETURN_IF_ERROR(expr)                            \
  do {                                                      \
    if (absl::Status ht_status = (expr); !ht_status.ok()) { \
      return ht_status;                                     \
    }                                                       \
  } while (false)

#define HT_CONCAT_INNER(a, b) a##b
#define HT_CONCAT(a, b) HT_CONCAT_INNER(a, b)
#define HT_ASSIGN_OR_RETURN(lhs, expr) \
  HT_ASSIGN_OR_RETURN_IMPL(HT_CONCAT(ht_or_, __LINE__), lhs, expr)
#define HT_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                             \
  if (!tmp.ok()) {                               \
    return tmp.status();                         \
  }                                              \
  lhs = std::move(tmp).value()
