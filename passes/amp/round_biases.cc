#include "halftone/passes/amp/round_biases.h"

#include <map>
#include <tuple>

#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

class RoundBiases : public Pass {
 public:
  const char* name() const override { return "round-biases"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    if (!context.target->RoundsBiases()) return false;
    std::map<std::tuple<int64_t, int, DType>, ir::Value> casts;  // by node, output and dtype
    int64_t rounded = 0;
    for (ir::Node* node : Snapshot(graph)) {
      const ir::AmpTrait& amp = node->op().amp;
      // Biases are what contractions add; the mask of an attention keeps its range.
      if (node->op().fusion != ir::FusionClass::kContraction) continue;
      if (amp.f16 != ir::AmpClass::kAllow || amp.keep_f32_inputs.empty()) continue;
      const DType low = node->input_type(0).dtype;
      if (!IsLow(low)) continue;
      for (const int port : amp.keep_f32_inputs) {
        if (port >= node->num_inputs() || node->input_type(port).dtype == low) continue;
        const ir::Value bias = node->input(port);
        ir::Value& cast = casts[{bias.node->id(), bias.index, low}];
        if (!cast.valid()) {
          ir::Builder b = BuilderLike(*bias.node, name());
          b.NameNext(Concat(bias.node->name(), "_", Name(low)));
          cast = b.Cast(b.Wrap(bias), low).value();
          HT_RETURN_IF_ERROR(b.status());
        }
        node->set_input(port, cast);
        ++rounded;
      }
    }
    context.stats["rounded_biases"] += rounded;
    return rounded > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeRoundBiases() { return std::make_unique<RoundBiases>(); }

}  // namespace halftone::passes
