#include "halftone/kernels/exchange_support.h"

#include "halftone/core/convert.h"
#include "halftone/core/threads.h"
#include "halftone/distributed/communicator.h"
#include "halftone/distributed/distributed.h"

namespace halftone::kernels {
namespace {

// Below this a parallel region costs more than the copy.
constexpr int64_t kCopyGrain = 16384;

}  // namespace

void CopyAs(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count) {
  const auto* const source = static_cast<const char*>(from);
  auto* const target = static_cast<char*>(to);
  ParallelFor(0, count, kCopyGrain, [&](int64_t begin, int64_t end) {
    ConvertElements(source + begin * static_cast<int64_t>(SizeOf(from_dtype)), from_dtype,
                    target + begin * static_cast<int64_t>(SizeOf(to_dtype)), to_dtype, end - begin);
  });
}

absl::StatusOr<distributed::Communicator*> CommunicatorFor(const ir::Node& node) {
  distributed::Communicator& world = distributed::World();
  const int64_t ranks = node.attrs().GetInt("ranks");
  if (ranks == 1) return static_cast<distributed::Communicator*>(nullptr);
  if (ranks != world.size()) {
    return FailedPrecondition(node.Label(), ": a step of ", ranks, " ranks in a job of ",
                              world.size(), "; expected to be run by mpirun -n ", ranks);
  }
  if (node.attrs().Has("rank") && node.attrs().GetInt("rank") != world.rank()) {
    return FailedPrecondition(node.Label(), ": the step of rank ", node.attrs().GetInt("rank"),
                              " on rank ", world.rank(), "; expected that of this rank");
  }
  return &world;
}

}  // namespace halftone::kernels
