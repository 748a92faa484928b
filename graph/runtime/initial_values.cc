#include "halftone/graph/runtime/initial_values.h"

#include <algorithm>
#include <cmath>

#include "halftone/core/convert.h"
#include "halftone/core/philox.h"
#include "halftone/core/threads.h"

namespace halftone::runtime {
namespace {

constexpr int64_t kWords = 4;                 // of one Philox group
constexpr int64_t kBatch = 1024;              // elements in double before they are rounded
constexpr int64_t kGrain = int64_t{1} << 14;  // elements worth a thread
static_assert(kBatch % kWords == 0 && kGrain % kBatch == 0);

void UniformGroup(const ir::Initializer& init, const PhiloxCounter& words, double* values) {
  for (int i = 0; i < kWords; ++i) {
    values[i] = init.a + (init.b - init.a) * static_cast<double>(UniformFromBits(words[i]));
  }
}

void NormalGroup(const ir::Initializer& init, const PhiloxCounter& words, double* values) {
  for (int i = 0; i < kWords; i += 2) {
    const NormalPair pair = NormalFromBits(words[i], words[i + 1]);
    values[i] = init.a + init.b * static_cast<double>(pair.first);
    values[i + 1] = init.a + init.b * static_cast<double>(pair.second);
  }
}

// Calls group(words, values) for every four elements of [begin, end) and stores what it gives.
template <typename Group>
void FillRange(uint64_t seed, uint64_t stream, int64_t begin, int64_t end, const Tensor& value,
               const Group& group) {
  double values[kBatch];
  char* const to = static_cast<char*>(value.raw());
  for (int64_t first = begin; first < end; first += kBatch) {
    const int64_t count = std::min(kBatch, end - first);
    for (int64_t i = 0; i < count; i += kWords) {
      group(PhiloxBlock(seed, stream, static_cast<uint64_t>((first + i) / kWords)), values + i);
    }
    ConvertElements(values, DType::kF64, to + first * static_cast<int64_t>(SizeOf(value.dtype())),
                    value.dtype(), count);
  }
}

}  // namespace

absl::StatusOr<Tensor> MakeInitialValue(const ir::Initializer& init, uint64_t seed, uint64_t stream,
                                        DType dtype, const Shape& shape) {
  using Kind = ir::Initializer::Kind;
  if (init.kind == Kind::kConstant && init.a == 0 && !std::signbit(init.a)) {
    return Tensor::AllocateZeros(dtype, shape);
  }
  HT_ASSIGN_OR_RETURN(const Tensor value, Tensor::Allocate(dtype, shape));
  ParallelFor(0, value.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
    switch (init.kind) {
      case Kind::kConstant:
        FillElements(init.a,
                     static_cast<char*>(value.raw()) + begin * static_cast<int64_t>(SizeOf(dtype)),
                     dtype, end - begin);
        break;
      case Kind::kUniform:
        FillRange(seed, stream, begin, end, value, [&](const PhiloxCounter& words, double* values) {
          UniformGroup(init, words, values);
        });
        break;
      case Kind::kNormal:
        FillRange(seed, stream, begin, end, value, [&](const PhiloxCounter& words, double* values) {
          NormalGroup(init, words, values);
        });
        break;
    }
  });
  return value;
}

}  // namespace halftone::runtime
