// What the scalers of a graph make known after a training step: too many skips, or a scale that
// cannot fall.
#pragma once

#include "halftone/core/status.h"
#include "halftone/graph/nn/declaration.h"
#include "halftone/graph/nn/graph_notes.h"
#include "halftone/graph/nn/graph_state.h"

namespace halftone::nn {

// Error: FailedPrecondition once a scaler has skipped more steps in a row than it may.
absl::Status CheckSkips(Declaration& declared, const GraphState& state);
// Takes in the scales as a training step is about to use them, without waiting for an accelerator
// that alone knows them.
void NoteScalesBefore(Declaration& declared);
// Takes in the scales as they are, the change of one as one by steps, or by the program. Before and
// after a change by the program; else when steps are done. Waits for an accelerator.
void NoteScales(Declaration& declared, bool are_set = false);
// A note, once, on a scaler that keeps skipping at a scale that cannot fall. Reads no state but
// after a skipped step; to be called when the step is done.
void NoteStuckScalers(Declaration& declared, const GraphState& state, GraphNotes& notes);

}  // namespace halftone::nn
