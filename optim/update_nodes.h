// The nodes around an optimizer update: learning rate, inverse loss scale, clip coefficient, moving
// averages. Passes put them into the graph; kernels need to know nothing of schedules or scalers.
#pragma once

#include <string>

#include "halftone/graph/ir/builder.h"
#include "halftone/optim/ema.h"
#include "halftone/optim/lr_schedule.h"

namespace halftone::optim {

// State of an optimizer, a scaler or a count, which starts as `init` in every element.
ir::Variable StateVariable(const std::string& name, const ir::ValueType& type, double init,
                           ir::VariableKind kind = ir::VariableKind::kOptimizer);
// The variable kMicroBatchesVariable.
ir::Variable MicroBatches();

// The learning rate of the step about to be applied. Computed in f64, so that pow and cos of a long
// run stay exact to the last bit of f32.
// Dtypes: base_lr f32[], applied_steps i64[] -> f32[].
ir::Expr LearningRateNodes(const LRSchedule& schedule, ir::Expr base_lr, ir::Expr applied_steps);

// f32(1 / f64(scale)): exact for powers of two down to 2^-127.
// Dtypes: f32[], or the i64[] of a count -> f32[].
ir::Expr InverseScaleNodes(ir::Expr scale);

// Adds a gradient to a sum, in a node of that name. Where `count`, the number of this gradient in
// the sum, is 1, the sum begins with it. Dtypes: sum and gradient alike, inverse_scale f32[], count
// i64[].
ir::Expr AccumulatedNode(const std::string& name, ir::Expr sum, ir::Expr gradient,
                         ir::Expr inverse_scale, ir::Expr count);

// min(1, max_norm / (norm + 1e-6)) where the norm is finite, else 1: a non-finite norm would turn
// every gradient into NaN or zero, and the step is skipped or reported instead.
// Dtypes: norm f32[], finite bool[] -> f32[]. Source: torch.nn.utils.clip_grad_norm_.
ir::Expr ClipCoefficientNodes(ir::Expr norm, ir::Expr finite, double max_norm);

// 1 - decay of an update, computed in f64. Dtypes: update i64[] -> f32[].
ir::Expr EmaWeightNodes(const Ema& ema, ir::Expr update);

// The average after an update, of which the parameter is `weight`, in a node of that name. Where
// `apply` is false it stays, bit for bit. Dtypes: average and parameter alike, weight f32[], apply
// bool[], update i64[].
ir::Expr EmaNode(const std::string& name, ir::Expr average, ir::Expr parameter, ir::Expr weight,
                 ir::Expr apply, ir::Expr update);

}  // namespace halftone::optim
