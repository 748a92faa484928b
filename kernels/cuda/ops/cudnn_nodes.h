// What cuDNN is asked for a node, apart from the device that it is asked for: the kernels' half
// that tests try on the library where there is no device.
#pragma once

#include <vector>

#include "halftone/graph/ir/graph.h"
#include "halftone/kernels/cuda/cudnn/attention_run.h"
#include "halftone/kernels/cuda/cudnn/conv_run.h"
#include "halftone/kernels/cuda/cudnn/plan.h"

namespace halftone::kernels {

cuda::ConvRunShape CudnnConvOf(const ir::Node& node, cuda::ConvProduct product);

// How a plan's graph differs from the convolution: an f32 weight gradient of 16-bit operands may come
// from operands widened to f32.
enum class CudnnConvWay : uint8_t { kDirect, kWidened };
// At most `limit`, best first as far as the library knows. Unimplemented if there is none.
absl::StatusOr<std::vector<cuda::CudnnPlan>> CudnnConvPlans(const cuda::CudnnConv& conv,
                                                            CudnnConvWay way,
                                                            const cuda::CudnnTarget& target,
                                                            size_t limit);

cuda::CudnnAttention CudnnAttentionOf(const ir::Node& node, bool gradient);
absl::StatusOr<std::vector<cuda::CudnnPlan>> CudnnAttentionPlans(
    const cuda::CudnnAttention& attention, const cuda::CudnnTarget& target, size_t limit);

}  // namespace halftone::kernels
