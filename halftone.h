// Everything a program needs: graphs, modules, functions, optimizers, mixed precision, tensors.
//
// Guide: graph/nn/graph.h (nn::Graph), graph/nn/module.h (writing modules), graph/nn/functional.h
// (functions over values), optim/optimizer.h and optim/lr_schedule.h, optim/grad_scaler.h and
// passes/amp/policy.h (mixed precision), graph/runtime/checkpoint.h, core/tensor.h.
#pragma once

#include "halftone/core/device.h"
#include "halftone/core/status.h"
#include "halftone/core/tensor.h"
#include "halftone/core/threads.h"
#include "halftone/core/version.h"
#include "halftone/graph/nn/activations.h"
#include "halftone/graph/nn/amp_scope.h"
#include "halftone/graph/nn/attention.h"
#include "halftone/graph/nn/conv.h"
#include "halftone/graph/nn/dropout.h"
#include "halftone/graph/nn/ema_scope.h"
#include "halftone/graph/nn/embedding.h"
#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/graph.h"
#include "halftone/graph/nn/linear.h"
#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/module_dict.h"
#include "halftone/graph/nn/module_list.h"
#include "halftone/graph/nn/module_scope.h"
#include "halftone/graph/nn/norm.h"
#include "halftone/graph/nn/pooling.h"
#include "halftone/graph/nn/recurrent.h"
#include "halftone/graph/nn/resize.h"
#include "halftone/graph/nn/run_log.h"
#include "halftone/graph/nn/sequential.h"
#include "halftone/graph/runtime/checkpoint.h"
#include "halftone/optim/ema.h"
#include "halftone/optim/grad_scaler.h"
#include "halftone/optim/lr_schedule.h"
#include "halftone/optim/optimizer.h"
#include "halftone/optim/reduce_on_plateau.h"
#include "halftone/passes/amp/policy.h"
