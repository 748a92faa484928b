// gather and embedding: rows of any dtype copied by run-time indices. All indices are checked
// before any row is read.
#include <cstring>

#include "halftone/core/threads.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/cpu/support/row_index.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

// x [outer, rows, inner] and indices [picks] to y [outer, picks, inner].
class GatherKernel : public Kernel {
 public:
  explicit GatherKernel(const ir::Node& node) : indices_(node.input_type(1)) {
    const Shape& x = node.input_type(0).shape;
    const int axis =
        node.attrs().Has("axis") ? ops::CheckedAxis(node.attrs().GetInt("axis"), x.rank()) : 0;
    for (int i = 0; i < axis; ++i) outer_ *= x[i];
    rows_ = x[axis];
    int64_t inner = 1;
    for (int i = axis + 1; i < x.rank(); ++i) inner *= x[i];
    row_bytes_ = inner * static_cast<int64_t>(SizeOf(node.input_type(0).dtype));
  }

  void Run(const KernelArgs& args) override {
    if (!indices_.Check(args.inputs[1], rows_, args.state) || row_bytes_ == 0) return;
    const char* x = static_cast<const char*>(args.inputs[0]);
    char* y = static_cast<char*>(args.outputs[0]);
    const int64_t picks = indices_.count();
    const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, row_bytes_));
    ParallelFor(0, outer_ * picks, grain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t row = i / picks * rows_ + indices_.At(args.inputs[1], i % picks);
        std::memcpy(y + i * row_bytes_, x + row * row_bytes_, row_bytes_);
      }
    });
  }

 private:
  RowIndices indices_;
  int64_t outer_ = 1, rows_ = 0, row_bytes_ = 0;
};

}  // namespace

void Register_cpu_gather(KernelRegistry& r) {
  AddNativeCandidate<GatherKernel>(r, "copy", "gather", ir::kAnyDType, PlainInputs);
  AddNativeCandidate<GatherKernel>(r, "copy", "embedding", ir::kAnyDType, PlainInputs);
}

}  // namespace halftone::kernels
