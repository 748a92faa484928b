// cast: between f32, f16 and bf16 in SIMD, all other pairs by the scalar conversions of core.
#include <cstring>

#include "halftone/core/convert.h"
#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/simd/convert.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

bool HasVectorForm(DType dtype) { return dtype == DType::kF32 || IsLow(dtype); }

class CastKernel : public Kernel {
 public:
  explicit CastKernel(const ir::Node& node)
      : from_(node.input_type(0).dtype),
        to_(node.output_type().dtype),
        n_(node.output_type().num_elements()) {}

  void Run(const KernelArgs& args) override {
    if (from_ != to_ && HasVectorForm(from_) && HasVectorForm(to_)) {
      Convert(args.inputs[0], from_, args.outputs[0], to_, n_);
      return;
    }
    const auto from_size = static_cast<int64_t>(SizeOf(from_)),
               to_size = static_cast<int64_t>(SizeOf(to_));
    ParallelFor(0, n_, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      ConvertElements(static_cast<const char*>(args.inputs[0]) + begin * from_size, from_,
                      static_cast<char*>(args.outputs[0]) + begin * to_size, to_, end - begin);
    });
  }

 private:
  DType from_, to_;
  int64_t n_;
};

}  // namespace

void Register_cpu_cast(KernelRegistry& r) {
  AddNativeCandidate<CastKernel>(r, "simd", "cast", ir::kStorable, LayoutOfInput);
}

}  // namespace halftone::kernels
