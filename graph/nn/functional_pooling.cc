#include "halftone/graph/nn/functional.h"

namespace halftone::nn {
namespace {

std::vector<int64_t> PoolStride(Size2d stride, Size2d kernel) {
  return stride.h == 0 && stride.w == 0 ? kernel.ints() : stride.ints();
}

}  // namespace

Value max_pool2d(const Value& x, Size2d kernel, const MaxPool2dOptions& options, Loc loc) {
  return Op("max_pool2d", {x},
            {{"kernel", kernel.ints()},
             {"stride", PoolStride(options.stride, kernel)},
             {"padding", options.padding.ints()},
             {"dilation", options.dilation.ints()},
             {"ceil_mode", options.ceil_mode}},
            loc);
}

Value avg_pool2d(const Value& x, Size2d kernel, const AvgPool2dOptions& options, Loc loc) {
  return Op("avg_pool2d", {x},
            {{"kernel", kernel.ints()},
             {"stride", PoolStride(options.stride, kernel)},
             {"padding", options.padding.ints()},
             {"ceil_mode", options.ceil_mode},
             {"count_include_pad", options.count_include_pad}},
            loc);
}

}  // namespace halftone::nn
