// Attention in the emulated cuDNN: the operations of its graphs, for whoever reads or runs one.
#pragma once

#include <vector>

#include "halftone/tests/cuda_emulation/cudnn_descriptor.h"

namespace halftone::emulation::cudnn {

inline constexpr size_t kAttentionRank = 4;  // of every tensor

// Inputs in order: of a product a and b, of a pointwise operation x and, where they are given, b and t.
std::vector<const Descriptor*> InputsOf(const Descriptor& op);
const Descriptor& OutputOf(const Descriptor& op);
cudnnPointwiseMode_t ModeOf(const Descriptor& op);
cudnnReduceTensorOp_t ReductionOf(const Descriptor& op);
std::vector<int64_t> DimsOf(const Descriptor& tensor);
int64_t ElementsOf(const std::vector<int64_t>& dims);
bool IsLow(cudnnDataType_t dtype);

}  // namespace halftone::emulation::cudnn
