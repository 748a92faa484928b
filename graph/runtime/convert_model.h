// Conversion of a trained model for inference in 16 bit, as MXNet's amp.convert_model does it, and
// back.
#pragma once

#include "halftone/core/device.h"
#include "halftone/graph/ir/model.h"
#include "halftone/passes/amp/policy.h"

namespace halftone::amp {

struct ConvertOptions {
  // Whether variables that 16-bit nodes alone read are stored in 16 bit, which takes half the
  // memory, and half of a file. Off: they stay f32, and the graph casts them. What a node keeps f32
  // (statistics and factors of norms, embedding tables) stays so either way.
  bool cast_parameters = false;
  // Where it is to run: nodes stay f32 for which that device has no 16-bit kernel, and it chooses
  // the dtype where the policy names none.
  Device device = Device::Cpu();
};

// `model`, which may have been trained in f32, with the dtypes and casts of mixed precision in its
// graph: what insert-amp-casts decides under `policy` (see passes/amp/policy.h), with the reasons on
// the nodes. Inputs and outputs keep their names and dtypes, the latter's but for
// policy.low_outputs. It runs, is written and read like any model. Policy::FromLists takes MXNet's
// lists.
//
// Example: converted = amp::ConvertModel(model, {.dtype = DType::kF16}, {.cast_parameters = true});
//
// Errors: InvalidArgument: a graph that is not for inference, with the node that says so (an
// optimizer, a scaler, a gradient, a write to a variable); a value that is missing, of another type
// or of no variable; a dtype that is not 16-bit, or no dtype where the device prefers none; a policy
// entry that matches nothing; a value that the 16-bit dtype cannot hold, with the nodes to deny.
// FailedPrecondition: it is converted already.
absl::StatusOr<ir::Model> ConvertModel(const ir::Model& model, const Policy& policy,
                                       const ConvertOptions& options = {});

// A converted model without its casts: f32 as before, for a reader that is to decide by itself.
// Values that were stored in 16 bit become f32 again, and stay rounded. A model that is not
// converted is left as it is. Errors: Internal, where a graph of a file is not what ConvertModel
// makes.
absl::StatusOr<ir::Model> RemoveAmpCasts(const ir::Model& model);

}  // namespace halftone::amp
