// Ops that move values: each way of copying, each element size, with and without alignment.
#include <gtest/gtest.h>

#include "halftone/kernels/cuda/runtime/copy_plan.h"
#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda/direct_run.h"

namespace halftone::testing {
namespace {

using cuda::CopyMode;
using cuda::StridedCopy;
using Ints = std::vector<int64_t>;

constexpr DType kOfEverySize[] = {DType::kU8, DType::kF16, DType::kF32, DType::kI64};

OpInput Numbers(DType dtype, const Shape& shape) {
  return IsFloat(dtype) ? Reals(shape) : Whole(dtype, shape, 0, 200);
}

// Aligned, then not.
void Check(const OpCase& c, DType dtype) {
  ExpectCpuBits(c, dtype);
  ExpectCpuBits(c, dtype, {.offset = SizeOf(dtype)});
}

TEST(CudaMovement, Transposes) {
  for (DType dtype : kOfEverySize) {
    for (const Shape& shape : {Shape{1, 31, 33}, Shape{3, 32, 64}, Shape{2, 65, 8}, Shape{5, 3, 70},
                               Shape{4, 70, 3}, Shape{2, 33, 129}}) {
      for (const Ints& perm : {Ints{0, 2, 1}, Ints{2, 1, 0}, Ints{1, 0, 2}, Ints{1, 2, 0}}) {
        Check(Case("transpose", "perm", {Numbers(dtype, shape)}, {{"perm", perm}}), dtype);
      }
    }
  }
}

// Of 2-byte elements more than 32 rows and columns are moved in pairs, as far as rows begin at 4 bytes.
TEST(CudaMovement, TransposesOfPairs) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const int64_t rows : {1, 31, 33, 63, 64, 65, 130}) {
      for (const int64_t columns : {1, 31, 33, 63, 64, 65, 130}) {
        const OpInput x = Numbers(dtype, {2, rows, columns});
        Check(Case("transpose", "perm", {x}, {{"perm", Ints{0, 2, 1}}}), dtype);
      }
    }
  }
}

// Rows of parts, which begin at odd elements or end within a pair.
TEST(CudaMovement, TransposesOfPartsInPairs) {
  const auto moved = [](const cuda::CopyView& view, int64_t from_elements, int64_t to_elements) {
    std::vector<uint16_t> from(from_elements), to(to_elements, 0xFFFF), want = to;
    for (int64_t i = 0; i < from_elements; ++i) from[i] = static_cast<uint16_t>(i);
    for (int64_t i = 0; i < view.extents[0]; ++i) {
      for (int64_t j = 0; j < view.extents[1]; ++j) {
        want[view.to_offset + i * view.to_strides[0] + j] =
            from[view.from_offset + i + j * view.from_strides[1]];
      }
    }
    const DeviceMemory source(from.data(), from.size() * 2), target(to.data(), to.size() * 2);
    const StridedCopy copy(2, view);
    EXPECT_EQ(copy.mode(), CopyMode::kTranspose);
    EXPECT_TRUE(copy.Launch(source.data(), target.data(), nullptr).ok());
    EXPECT_EQ(target.Read(to.data()), cudaSuccess);
    EXPECT_EQ(to, want);
  };
  for (const int64_t columns : {65, 66}) {
    for (const int64_t rows : {35, 36}) {
      for (const int64_t from_offset : {0, 1}) {
        for (const int64_t to_offset : {0, 1}) {
          for (const int64_t from_stride : {70, 71}) {
            for (const int64_t to_stride : {40, 41}) {
              moved({{columns, rows}, {1, from_stride}, {to_stride, 1}, from_offset, to_offset},
                    from_stride * rows + 1, to_stride * columns + 1);
            }
          }
        }
      }
    }
  }
}

TEST(CudaMovement, Broadcasts) {
  for (DType dtype : kOfEverySize) {
    for (int64_t inner : {1, 16, 33, 48}) {
      const ir::Attributes to = {{"shape", Ints{3, 5, inner}}};
      for (const Shape& from :
           {Shape{}, Shape{inner}, Shape{5, 1}, Shape{3, 1, 1}, Shape{3, 1, inner}}) {
        Check(Case("broadcast_to", "from", {Numbers(dtype, from)}, to), dtype);
      }
    }
  }
}

TEST(CudaMovement, SlicesAndTheirGradients) {
  for (DType dtype : kOfEverySize) {
    for (const auto& [starts, limits, strides] : {std::tuple{Ints{0, 0}, Ints{9, 64}, Ints{1, 1}},
                                                  {{1, 16}, {8, 48}, {1, 1}},
                                                  {{2, 3}, {9, 60}, {1, 1}},
                                                  {{0, 1}, {9, 64}, {2, 3}},
                                                  {{4, 4}, {4, 9}, {1, 1}}}) {
      const ir::Attributes attrs = {{"starts", starts}, {"limits", limits}, {"strides", strides}};
      Check(Case("slice", "part", {Numbers(dtype, {9, 64})}, attrs), dtype);
      Shape part{(limits[0] - starts[0] + strides[0] - 1) / strides[0],
                 (limits[1] - starts[1] + strides[1] - 1) / strides[1]};
      ir::Attributes grad = attrs;
      grad.Set("shape", Ints{9, 64});
      Check(Case("slice_grad", "part", {Numbers(dtype, part)}, grad), dtype);
    }
  }
}

TEST(CudaMovement, Concatenations) {
  for (DType dtype : kOfEverySize) {
    for (int64_t axis : {0, 1, 2}) {
      for (int64_t inner : {16, 5}) {
        const auto part = [&](int64_t extent) {
          Ints dims = {3, 4, inner};
          dims[static_cast<size_t>(axis)] = extent;
          return Numbers(dtype, Shape(dims));
        };
        Check(Case("concat", "parts", {part(16), part(0), part(1), part(32)}, {{"axis", axis}}),
              dtype);
      }
    }
  }
}

TEST(CudaMovement, Relayouts) {
  for (DType dtype : kOfEverySize) {
    for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{1, 40, 6, 6}, Shape{3, 64, 1, 1}}) {
      const OpInput x = Numbers(dtype, shape);
      Check(Case("relayout", "to", {x}, {{"to", std::string("nhwc")}}), dtype);
    }
  }
}

TEST(CudaMovement, ReshapesInPlace) {
  const ir::Attributes to = {{"shape", Ints{11, 3}}};
  Check(Case("reshape", "copy", {Reals({33})}, to), DType::kF16);
  ExpectCpuBits(Case("reshape", "in_place", {Reals({33})}, to), DType::kF16, {.in_place = 0});
}

// Extents, strides of the source and of the target.
TEST(CudaMovement, ChoosesTheWideAccess) {
  const StridedCopy whole(2, {{4, 8}, {8, 1}, {8, 1}});
  EXPECT_FALSE(whole.mode().has_value());
  const StridedCopy rows(2, {{4, 8}, {16, 1}, {8, 1}});
  EXPECT_EQ(rows.mode(), CopyMode::kStrided);
  EXPECT_EQ(rows.moved_size(), 16);
  // The offset allows 4 bytes.
  const StridedCopy shifted(2, {{4, 8}, {16, 1}, {8, 1}, /*from_offset=*/2});
  EXPECT_EQ(shifted.moved_size(), 4);
  const StridedCopy odd(2, {{4, 7}, {16, 1}, {7, 1}});
  EXPECT_EQ(odd.moved_size(), 2);
  const StridedCopy fill(2, {{4, 8}, {1, 0}, {8, 1}});
  EXPECT_EQ(fill.mode(), CopyMode::kFill);
  const StridedCopy matrix(4, {{40, 33}, {1, 40}, {33, 1}});
  EXPECT_EQ(matrix.mode(), CopyMode::kTranspose);
  const StridedCopy few_rows(4, {{40, 3}, {1, 40}, {3, 1}});
  EXPECT_EQ(few_rows.mode(), CopyMode::kStrided);
}

}  // namespace
}  // namespace halftone::testing
