#include "halftone/kernels/cuda/runtime/nccl.h"

#if defined(HALFTONE_HAS_NCCL)
#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace halftone::cuda {
namespace {

constexpr int kOldest = 21400;  // 2.14.0

#if defined(HALFTONE_CUDA_EMULATED)

absl::StatusOr<Nccl> Load() {
  return Nccl{&ncclGetUniqueId,    &ncclCommInitRankConfig, &ncclCommFinalize, &ncclCommDestroy,
              &ncclCommAbort,      &ncclCommGetAsyncError,  &ncclAllReduce,    &ncclReduce,
              &ncclBroadcast,      &ncclGroupStart,         &ncclGroupEnd,     &ncclGetVersion,
              &ncclGetErrorString, &ncclGetLastError};
}

#else

constexpr char kLibrary[] = "libnccl.so.2";
constexpr char kVariable[] = "HALFTONE_NCCL_LIBRARY";

template <typename F>
void Find(void* library, const char* name, F* function, std::string* missing) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  if (*function == nullptr && missing->empty()) *missing = name;
}

absl::StatusOr<Nccl> Load() {
  const char* const named = std::getenv(kVariable);
  const bool is_named = named != nullptr && named[0] != '\0';
  const char* const file = is_named ? named : kLibrary;
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    return FailedPrecondition("cannot load NCCL: ", reason == nullptr ? file : reason,
                              is_named ? Concat(" (named by ", kVariable, ")") : "");
  }
  Nccl nccl;
  std::string missing;
  Find(library, "ncclGetVersion", &nccl.get_version, &missing);
  Find(library, "ncclGetUniqueId", &nccl.get_unique_id, &missing);
  Find(library, "ncclCommInitRankConfig", &nccl.comm_init_rank_config, &missing);
  Find(library, "ncclCommFinalize", &nccl.comm_finalize, &missing);
  Find(library, "ncclCommDestroy", &nccl.comm_destroy, &missing);
  Find(library, "ncclCommAbort", &nccl.comm_abort, &missing);
  Find(library, "ncclCommGetAsyncError", &nccl.comm_get_async_error, &missing);
  Find(library, "ncclAllReduce", &nccl.all_reduce, &missing);
  Find(library, "ncclReduce", &nccl.reduce, &missing);
  Find(library, "ncclBroadcast", &nccl.broadcast, &missing);
  Find(library, "ncclGroupStart", &nccl.group_start, &missing);
  Find(library, "ncclGroupEnd", &nccl.group_end, &missing);
  Find(library, "ncclGetErrorString", &nccl.get_error_string, &missing);
  Find(library, "ncclGetLastError", &nccl.get_last_error, &missing);
  if (missing.empty()) return nccl;
  return FailedPrecondition("cannot load NCCL: ", file, " has no function ", missing,
                            "; expected NCCL 2.14 or newer");
}

#endif

absl::StatusOr<Nccl> LoadAndCheck() {
  HT_ASSIGN_OR_RETURN(const Nccl nccl, Load());
  int version = 0;
  HT_RETURN_IF_ERROR(ToStatus(nccl, nccl.get_version(&version), "ncclGetVersion"));
  if (version >= kOldest) return nccl;
  return FailedPrecondition("NCCL is of version code ", version, "; expected ", kOldest,
                            " (2.14) or newer");
}

}  // namespace

absl::StatusOr<const Nccl*> LoadNccl() {
  // Never unloaded: its threads may run to the end of the process.
  static const auto* const loaded = new absl::StatusOr<Nccl>(LoadAndCheck());
  if (!loaded->ok()) return loaded->status();
  return &**loaded;
}

absl::Status ToStatus(const Nccl& nccl, ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return absl::OkStatus();
  const char* const detail = nccl.get_last_error(nullptr);
  const bool is_told = detail != nullptr && detail[0] != '\0';
  return absl::UnavailableError(
      Concat(call, ": ", nccl.get_error_string(result), is_told ? Concat(" (", detail, ")") : ""));
}

}  // namespace halftone::cuda
#endif
