// The edge cases of mixed precision and loss scaling that must have a test, and which it is: none is
// lost when tests are moved or renamed.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "halftone/tests/meta/tree_rules.h"

namespace halftone::meta {
namespace {

// What it is about, and "Suite, Name" of the tests that hold it.
const std::vector<std::pair<std::string, std::vector<std::string>>>& EdgeCases() {
  static const auto* const cases =
      new std::vector<std::pair<std::string, std::vector<std::string>>>{
          {"tensors without elements", {"AmpEdgeCases, EmptyTensors"}},
          {"whole numbers, bools and f64 are not cast",
           {"AmpEdgeCases, IntegersBoolsAndDoublesAreNeverCast"}},
          {"f16 and bf16 in one graph",
           {"AmpEdgeCases, ValuesTheUserMade16BitAreLeftAlone", "EdgeCases, F16AndBf16InOneGraph"}},
          {"casts that the user wrote", {"AmpEdgeCases, AUsersCastStays"}},
          {"a tensor read in both precisions", {"AmpEdgeCases, ATensorReadByBothPaintsIsCastOnce"}},
          {"f32 statistics beside a 16-bit result", {"AmpEdgeCases, NormStatisticsStayF32"}},
          {"a weight read in both precisions", {"EdgeCaseSteps, AWeightReadInBothPrecisions"}},
          {"a weight tied between embedding and linear layer",
           {"AmpEdgeCases, EmbeddingCastsRowsAndNotTheTable",
            "EdgeCaseSteps, AWeightTiedBetweenAnEmbeddingAndALinearLayer"}},
          {"a 16-bit value that is fetched",
           {"AmpAllow, MatmulTurnsLowAndTheOutputKeepsItsDType",
            "AmpAllow, LowOutputsStayLowOnRequest"}},
          {"constants that do not fit f16", {"RangeLint, F16BoundsAreExact"}},
          {"state carried from step to step", {"AmpEdgeCases, StateCarriedAcrossStepsStaysF32"}},
          {"a residual add between allowed and denied nodes",
           {"AmpEdgeCases, ResidualAddBetweenAllowAndDenyIsF32"}},
          {"an op without a 16-bit kernel", {"AmpKernels, NodesWithoutKernelStayF32"}},
          {"all nodes denied", {"AmpEdgeCases, AllDeniedIsANoOp"}},
          {"the pass run twice",
           {"AmpEdgeCases, RunningTwiceChangesNothing",
            "AmpRandom, IsIdempotentOrderIndependentAndVerified"}},
          {"another order of nodes", {"AmpEdgeCases, NodeOrderDoesNotMatter"}},
          {"an infinity in the first step", {"ScalerScenarios, TheFirstStepOverflows"}},
          {"an infinity in one optimizer of two",
           {"CaseA02, EachOptimizerSkipsOnItsOwnGradients",
            "ScalerScenarios, SkipAnyLooksAtEveryOptimizer"}},
          {"no gradient at all", {"CaseA03, AStepWithoutAnyGradientIsANoOp"}},
          {"a gradient of exactly 65504",
           {"ScalerScenarios, TheLargestF16GradientIsFiniteTheNextIsNot"}},
          {"NaN as well as infinity", {"CaseA06, AnyBadElementSkipsTheWholeStep"}},
          {"a scale at its minimum", {"ScalerScenarios, BackoffStopsAtMinScale"}},
          {"a scale at its maximum", {"ScalerScenarios, GrowthStopsAtMaxScale"}},
          {"an interval set below the tracker",
           {"SetScalerOptions, AnIntervalBelowTheTrackerGrowsAtTheNextStep"}},
          {"growth to what is not finite", {"CaseA01, AGrowthThatIsNotFiniteIsDropped"}},
          {"state loaded before the graph is built", {"CaseA07, LoadBeforeTheGraphIsBuilt"}},
          {"a static scale and an infinity",
           {"ScalerScenarios, AStaticScaleChecksAndSkipsButStays"}},
          {"a disabled scaler", {"ScalerScenarios, ADisabledScalerIsPlainF32BitForBit"}},
          {"an infinity in the middle of accumulated micro-batches",
           {"Accumulation, OneMicroBatchThatIsNotFiniteSkipsTheWindow"}},
          {"clipping and an infinity", {"ScalerScenarios, ClippingWithANonFiniteNormIsSkipped"}},
          {"saved and restored within a window",
           {"ScalerScenarios, ResumingInTheMiddleOfAWindowGivesTheSameTrajectory",
            "AccumulationState, AResumedRunIsTheOneThatWasNeverKilled"}},
      };
  return *cases;
}

TEST(EdgeCases, EachHasItsTests) {
  std::string tests;
  for (const SourceFile& file : ReadTree(HALFTONE_SOURCE_DIR)) {
    if (file.path.rfind("tests/", 0) == 0 && file.path.rfind("tests/meta/", 0) != 0) {
      tests += file.text;
    }
  }
  for (const auto& [what, names] : EdgeCases()) {
    for (const std::string& name : names) {
      EXPECT_TRUE(tests.find("TEST(" + name + ") {") != tests.npos ||
                  tests.find("TEST_P(" + name + ") {") != tests.npos)
          << what << ": no test " << name;
    }
  }
}

}  // namespace
}  // namespace halftone::meta
