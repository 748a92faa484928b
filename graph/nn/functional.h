// Every function over values, by family.
#pragma once

#include "halftone/graph/nn/functional_activation.h"
#include "halftone/graph/nn/functional_conv.h"
#include "halftone/graph/nn/functional_elementwise.h"
#include "halftone/graph/nn/functional_gradient.h"
#include "halftone/graph/nn/functional_index.h"
#include "halftone/graph/nn/functional_linear.h"
#include "halftone/graph/nn/functional_loss.h"
#include "halftone/graph/nn/functional_math.h"
#include "halftone/graph/nn/functional_norm.h"
#include "halftone/graph/nn/functional_random.h"
#include "halftone/graph/nn/functional_reduce.h"
#include "halftone/graph/nn/functional_shape.h"
