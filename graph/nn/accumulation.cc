#include "halftone/graph/nn/accumulation.h"

#include "halftone/optim/update_rule.h"

namespace halftone::nn {

absl::Status Accumulation::Run(CompiledStep& step) {
  if (step.training) HT_RETURN_IF_ERROR(CheckFits(step));
  if (step.update == nullptr) return under_way_.Launch(step);
  const uint64_t before = micro_batches();
  for (size_t i = 1; i <= step.micro_batches; ++i) {
    const absl::Status added = under_way_.Launch(step, /*last_of_call=*/i == step.micro_batches);
    if (!added.ok()) {
      Recount(before);
      return added;
    }
    ++micro_batches();
    step.NextMicroBatch();
  }
  update_ = step.update;
  return absl::OkStatus();
}

absl::Status Accumulation::Update() {
  const absl::Status updated = under_way_.Launch(*update_);
  if (updated.ok()) {
    micro_batches() = 0;
  } else {
    Recount(micro_batches());
  }
  return updated;
}

void Accumulation::Offer(const CompiledStep& step) {
  if (update_ == nullptr) update_ = step.update;
}

absl::Status Accumulation::CheckFits(const CompiledStep& step) {
  if (micro_batches() == 0) return absl::OkStatus();
  if (step.update == nullptr) {
    return FailedPrecondition("a step that does not accumulate, after ", micro_batches(),
                              " micro-batches that wait for their update; expected flush() before");
  }
  if (update_ == nullptr || update_ == step.update || update_->sums == step.update->sums) {
    return absl::OkStatus();
  }
  return FailedPrecondition("a step whose gradients are those of other parameters than the ",
                            micro_batches(), " micro-batches have that wait for their update; ",
                            "expected flush() before");
}

void Accumulation::Recount(uint64_t before) {
  under_way_.Settle();
  // A step that fails on a device has been counted here and not there.
  double there = state_.Scalar(optim::kMicroBatchesVariable, 0);
  if (before == 0 && there != 0 && state_.SetScalar(optim::kMicroBatchesVariable, 0).ok()) {
    there = 0;
  }
  micro_batches() = static_cast<uint64_t>(there);
}

absl::StatusOr<std::vector<ir::ValueType>> MicroBatchTypes(absl::Span<const Tensor> in,
                                                           size_t count) {
  std::vector<ir::ValueType> types;
  for (size_t i = 0; i < in.size(); ++i) {
    ir::ValueType type{in[i].dtype(), in[i].shape()};
    if (count > 1 && type.shape.rank() > 0) {
      std::vector<int64_t> dims(type.shape.dims().begin(), type.shape.dims().end());
      if (dims[0] % static_cast<int64_t>(count) != 0) {
        return InvalidArgument("input ", i, " is ", type.ToString(),
                               "; expected a dimension 0 that divides into ", count,
                               " micro-batches (config.set_gradient_accumulation_steps)");
      }
      dims[0] /= static_cast<int64_t>(count);
      type.shape = Shape(dims);
    }
    types.push_back(std::move(type));
  }
  return types;
}

ir::ValueType JoinedType(const ir::ValueType& micro_batch, size_t count) {
  if (count == 1) return micro_batch;
  std::vector<int64_t> dims(micro_batch.shape.dims().begin(), micro_batch.shape.dims().end());
  if (dims.empty()) dims.push_back(1);
  dims[0] *= static_cast<int64_t>(count);
  return {micro_batch.dtype, Shape(dims)};
}

}  // namespace halftone::nn
