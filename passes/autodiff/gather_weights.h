// What insert-optimizers does where each rank updates some of the parameters: every rank gets the others'.
//
//          %u_next = sgd_update(%u, %du, ...)                      (of the parameters that this rank owns)
//          %b0 = all_gather_start(%u_next) {owners=[0, 1], rank=0, ranks=2, shapes=["[8,16]", "[16]"]}
//          ...
//          %v_next = all_gather_wait(%b0) {owners=[0, 1], pieces=[1], rank=0, ranks=2, shapes=...}
//          commit "v" = %v_next
//
// A bucket holds parameters of one dtype and is begun as soon as it is full, while later updates run; waits
// are behind all updates. Which parameters are in which bucket is the same on all ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/ir/builder.h"

namespace halftone::passes {

class GatherWeights {
 public:
  // Of `ranks` ranks, this one being `rank`. `name` begins those of the nodes. The builder must outlive it.
  GatherWeights(ir::Builder& builder, std::string name, int64_t ranks, int64_t rank,
                int64_t bucket_bytes);

  // A parameter and the rank that updates it. `updated`: its new value where that is this rank, which
  // commits it itself. Callers on all ranks add the same parameters in the same order.
  absl::Status Add(const ir::Variable& parameter, int64_t owner, ir::Expr updated);
  // Waits for all, and commits what others have updated.
  absl::Status Finish();

 private:
  struct Bucket {
    std::vector<std::string> parameters, shapes;
    std::vector<int64_t> owners;
    std::vector<ir::Expr> own;
    int64_t bytes = 0;
    ir::Expr buffer;
  };

  void Start(Bucket& bucket, DType dtype);
  ir::Attributes LayoutOf(const Bucket& bucket) const;

  ir::Builder& b_;
  const std::string name_;
  const int64_t ranks_, rank_, bucket_bytes_;
  std::map<DType, Bucket> open_;
  std::vector<Bucket> started_;
};

}  // namespace halftone::passes
