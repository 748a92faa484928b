// Short forms of the training tasks whose full runs examples/README.md reports: a GPT on characters,
// ResNet-18 on images, a GAN.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "halftone/core/io/file.h"
#include "halftone/tests/programs/image_set.h"
#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

using ::testing::HasSubstr;

// The last line of what a program prints.
nlohmann::json LastLine(const Result& run) {
  const size_t end = run.out.find_last_not_of('\n');
  const size_t line = run.out.rfind('\n', end);
  return nlohmann::json::parse(run.out.substr(line == std::string::npos ? 0 : line + 1),
                               /*cb=*/nullptr, /*allow_exceptions=*/false);
}

class TrainingTask : public ::testing::Test {
 protected:
  nlohmann::json Train(const std::string& program, const std::string& arguments) {
    const Result run = Start("examples/" + program, arguments + " --threads=1");
    EXPECT_EQ(run.status, 0) << run.err;
    nlohmann::json result = LastLine(run);
    EXPECT_TRUE(result.is_object()) << run.out;
    return result.is_object() ? result : nlohmann::json::object();
  }
  const TempDir dir_;
};

// A text of five characters in one order, which nothing but position 0 of a sequence leaves open.
TEST_F(TrainingTask, AGptInF16FollowsF32) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "abcd\n";
  WriteBytes(dir_.Path("text"), text);
  const std::string arguments =
      Concat("--text=", dir_.Path("text"),
             " --steps=60 --batch=4 --length=20 --width=32 --blocks=1 --lr=0.01 --amp=");
  const auto f32 = Train("char_gpt", arguments + "off");
  const auto f16 = Train("char_gpt", arguments + "f16");
  EXPECT_EQ(f32.value("characters", 0), 5);
  EXPECT_LT(f32.value("test_loss", 9.0), 0.1);
  EXPECT_NEAR(f16.value("test_loss", 9.0), f32.value("test_loss", 9.0), 0.01);
  EXPECT_EQ(f16.value("skipped_steps", -1), 0);
  EXPECT_EQ(f16.value("final_scale", 0.0), 65536);
  EXPECT_EQ(f32.value("amp", ""), "off");
}

TEST_F(TrainingTask, AGptReadsAFolder) {
  std::filesystem::create_directories(dir_.Path("texts/deeper"));
  for (const char* name : {"b", "a", "deeper/c"}) {
    WriteBytes(dir_.Path(Concat("texts/", name)), std::string(300, name[0]));
  }
  std::filesystem::create_symlink("a", dir_.Path("texts/link"));
  const auto result = Train("char_gpt", Concat("--text=", dir_.Path("texts"),
                                               " --steps=1 --batch=2 --length=4 --width=32 "
                                               "--blocks=1 --amp=off"));
  EXPECT_EQ(result.value("characters", 0), 2);
}

TEST_F(TrainingTask, AGptNamesATextThatIsTooShort) {
  WriteBytes(dir_.Path("text"), std::string(100, 'a'));
  Result run = Start("examples/char_gpt", Concat("--text=", dir_.Path("text"), " --length=30"));
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.err, Concat("char_gpt: ", dir_.Path("text"),
                            ": has 100 characters; expected more than 4810 for sequences of 30 in "
                            "batches of 16\n"));
  WriteBytes(dir_.Path("text"), "");
  run = Start("examples/char_gpt", Concat("--text=", dir_.Path("text")));
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.err, Concat("char_gpt: ", dir_.Path("text"), ": is empty; expected a text\n"));
}

// Images whose class is where they are bright.
TEST_F(TrainingTask, AResNetLearnsInBf16) {
  WriteStripedImageSet(dir_.Path("data"), 160);
  const auto result =
      Train("fashion_mnist",
            Concat("--model=resnet18 --amp=bf16 --batch=10 --epochs=4 --data=", dir_.Path("data")));
  EXPECT_GE(result.value("test_accuracy", 0.0), 0.9);
  EXPECT_EQ(result.value("steps", 0), 64);
}

TEST_F(TrainingTask, F8FollowsF32) {
  const std::string data = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "Fashion-MNIST is not installed";
  const auto accuracy = [&](const std::string& amp) {
    const auto result =
        Train("fashion_mnist", Concat("--epochs=2 --limit=6000 --seed=2 --amp=", amp));
    return result.value("test_accuracy", 0.0);
  };
  const double f32 = accuracy("off");
  EXPECT_GT(f32, 0.75);
  EXPECT_NEAR(accuracy("f8"), f32, 0.02);
}

TEST_F(TrainingTask, AGanInF16KeepsFiniteWeights) {
  WriteImageSet(dir_.Path("data"), 40);
  const std::string sheet = dir_.Path("sheet.pgm");
  const auto result =
      Train("dcgan", Concat("--amp=f16 --steps=30 --batch=8 --width=4 --data=", dir_.Path("data"),
                            " --sheet=", sheet));
  EXPECT_TRUE(result.value("finite", false));
  for (const char* net : {"discriminator", "generator"}) {
    EXPECT_EQ(result.value(Concat(net, "_scale"), 0.0), 65536);
    EXPECT_EQ(result.value(Concat(net, "_skipped"), -1), 0);
  }
  const auto image = io::ReadFile(sheet, 1 << 20);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->size(), std::string("P5 256 256 255\n").size() + 256 * 256);
}

// Eight batches for an update of each net, and a window of two at the end.
TEST_F(TrainingTask, AGanWithTwoScalersAccumulatesEightBatches) {
  WriteImageSet(dir_.Path("data"), 40);
  const auto result = Train(
      "dcgan",
      Concat("--amp=f16 --steps=18 --accumulate=8 --batch=4 --width=4 --data=", dir_.Path("data")));
  EXPECT_TRUE(result.value("finite", false));
  EXPECT_EQ(result.value("updates", 0), 3);
  EXPECT_EQ(result.value("discriminator_skipped", -1), 0);
  EXPECT_EQ(result.value("generator_skipped", -1), 0);
}

// Without a scaler nothing skips the step that a rate beyond all measure has broken.
TEST_F(TrainingTask, AGanNamesAWeightThatIsNotFinite) {
  WriteImageSet(dir_.Path("data"), 40);
  const Result run =
      Start("examples/dcgan",
            Concat("--amp=off --steps=5 --batch=8 --width=4 --lr=1e38 --threads=1 --data=",
                   dir_.Path("data")));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr(" has an element that is not finite\n"));
  EXPECT_EQ(run.out, "");
}

TEST_F(TrainingTask, WrongOptionsEndThemWithStatus2) {
  const auto error = [](const std::string& program, const std::string& options) {
    const Result run = Start("examples/" + program, options);
    EXPECT_EQ(run.status, 2) << options;
    return run.err;
  };
  EXPECT_EQ(error("fashion_mnist", "--model=vgg"),
            "fashion_mnist: --model: expected cnn or resnet18\n");
  EXPECT_EQ(error("char_gpt", "--width=48"), "char_gpt: --width: expected a multiple of 32\n");
  EXPECT_EQ(error("char_gpt", "--steps=0"),
            "char_gpt: --batch, --length, --steps, --blocks: expected 1 or more\n");
  EXPECT_EQ(error("char_gpt", "--amp=f4"),
            "char_gpt: --amp: expected off, bf16, f16, f8 or auto\n");
  EXPECT_EQ(error("dcgan", "--batch=0"),
            "dcgan: --batch, --width, --steps, --accumulate: expected 1 or more\n");
  EXPECT_EQ(error("dcgan", "--amp=f4"), "dcgan: --amp: expected off, bf16, f16, f8 or auto\n");
}

}  // namespace
}  // namespace halftone::testing
