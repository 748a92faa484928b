// `halftone_dump --run`: what is read of a run, the page, and a run of an example.
#include "halftone/tools/support/run_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "halftone/core/io/event_file.h"
#include "halftone/core/io/record_file.h"
#include "halftone/tests/programs/image_set.h"
#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"
#include "halftone/tools/support/run_history.h"

namespace halftone::tools {
namespace {

using halftone::testing::Bytes;
using halftone::testing::Result;
using halftone::testing::Start;
using halftone::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// An event of one number as a record.
std::string Number(int64_t step, std::string_view tag, float value) {
  io::Event event;
  event.wall_time = 1'700'000'000 + static_cast<double>(step);
  event.step = step;
  event.scalars = {{tag, value}};
  std::string bytes, file;
  io::AppendEvent(event, bytes);
  io::AppendRecord(bytes, file);
  return file;
}

std::string StartAt(int64_t step) {
  io::Event event;
  event.step = step;
  event.starts_session = true;
  std::string bytes, file;
  io::AppendEvent(event, bytes);
  io::AppendRecord(bytes, file);
  return file;
}

std::vector<float> ValuesOf(const RunCurve& curve) {
  std::vector<float> values;
  for (const RunPoint& point : curve.points) values.push_back(point.value);
  return values;
}

TEST(ReadRun, GoesOnFromFileToFile) {
  const TempDir dir;
  const std::string first =
      StartAt(1) + Number(1, "a", 10) + Number(2, "a", 20) + Number(3, "a", 30) + Number(3, "b", 3);
  // The record that a kill cut off.
  dir.Write("events.out.tfevents.1", first + Number(4, "a", 40).substr(0, 20));
  dir.Write("events.out.tfevents.2", StartAt(3) + Number(3, "a", 31) + Number(4, "a", 41));
  const auto run = ReadRun(dir.path());
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_EQ(run->curves.size(), 1U) << "all of b is void";
  EXPECT_THAT(ValuesOf(run->curves[0]), ElementsAre(10, 20, 31, 41));
  ASSERT_EQ(run->files.size(), 2U);
  EXPECT_TRUE(run->files[0].truncated);
  EXPECT_EQ(run->files[0].events, 5);
  EXPECT_FALSE(run->files[1].truncated);
}

// As of writers that start no session.
TEST(ReadRun, AStepThatIsNotTheHighestVoidsWhatItsCurveHasBehindIt) {
  const TempDir dir;
  dir.Write("x.tfevents", Number(1, "a", 10) + Number(2, "a", 20) + Number(2, "b", 5) +
                              Number(3, "a", 30) + Number(2, "a", 21));
  const auto run = ReadRun(dir.path());
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_EQ(run->curves.size(), 2U);
  EXPECT_THAT(ValuesOf(run->curves[0]), ElementsAre(10, 21));
  EXPECT_THAT(ValuesOf(run->curves[1]), ElementsAre(5));
}

TEST(ReadRun, NamesFileAndOffsetOfWhatIsDamaged) {
  const TempDir dir;
  const auto error = [&dir](const std::string& bytes) {
    dir.Write("x.tfevents", bytes);
    return ReadRun(dir.path()).status().ToString();
  };
  const std::string good = Number(1, "a", 10), path = dir.Path("x.tfevents");
  std::string damaged = good + good;
  damaged[good.size() + 12] ^= 1;
  EXPECT_THAT(error(damaged),
              HasSubstr(Concat("DATA_LOSS: ", path, ": the record at offset ", good.size(),
                               " is damaged: the checksum of its "
                               "payload is ")));
  std::string no_event;
  io::AppendRecord("\x0b", no_event);
  EXPECT_EQ(error(good + no_event),
            Concat("INVALID_ARGUMENT: ", path, ": the record at offset ", good.size(),
                   ": event, byte 1 of 1: expected a field of wire type 0, 1, 2 or 5"));
  EXPECT_EQ(error(Number(1, std::string(1001, 'a'), 1)),
            Concat("INVALID_ARGUMENT: ", path,
                   ": the record at offset 0: a tag of 1001 bytes; expected at most 1000"));
  std::string many;
  for (int i = 0; i <= 1000; ++i) many += Number(1, std::to_string(i), 1);
  EXPECT_THAT(error(many), HasSubstr(": over 1000 tags in this run"));
}

TEST(ReadRun, SaysWhereThereIsARun) {
  const TempDir dir;
  EXPECT_EQ(ReadRun(dir.Path("none")).status().ToString(),
            "NOT_FOUND: " + dir.Path("none") + ": no such folder");
  EXPECT_EQ(ReadRun(dir.path()).status().ToString(),
            "NOT_FOUND: " + dir.path() + ": has no event file (*tfevents*)");
  for (const char* folder : {"b", "a", "empty"})
    std::filesystem::create_directory(dir.Path(folder));
  dir.Write("a/x.tfevents", "");
  dir.Write("b/x.tfevents", "");
  EXPECT_EQ(ReadRun(dir.path()).status().ToString(),
            "NOT_FOUND: " + dir.path() +
                ": has no event file (*tfevents*); expected one of its folders a, b");
}

TEST(FindSkippedSteps, ReadsTheCounters) {
  RunHistory run;
  // Logged every third step; what was skipped before step 3 is unknown.
  run.curves.push_back({"scaler0/skipped_steps", {{3, 0, 1}, {6, 0, 1}, {9, 0, 3}}});
  run.curves.push_back({"scaler1/skipped_steps", {{1, 0, 1}, {9, 0, 2}, {10, 0, NAN}}});
  run.curves.push_back({"train/loss", {{1, 0, 7}, {2, 0, 9}}});
  std::vector<std::vector<int64_t>> found;
  for (const SkippedSteps& s : FindSkippedSteps(run)) found.push_back({s.after, s.step, s.count});
  EXPECT_THAT(found, ElementsAre(ElementsAre(0, 1, 1), ElementsAre(1, 9, 3)));
}

TEST(ThinOut, KeepsWhatALineShows) {
  std::vector<RunPoint> points;
  for (int64_t step = 0; step < 100'000; ++step) {
    points.push_back({step, 0, static_cast<float>(step % 7)});
  }
  points[31'234].value = 100;
  points[77'777].value = -100;
  points[55'555].value = NAN;
  const std::vector<RunPoint> kept = ThinOut(points, 2000);
  EXPECT_LE(kept.size(), 2010U);
  EXPECT_GE(kept.size(), 1000U);
  EXPECT_EQ(kept.front().step, 0);
  EXPECT_EQ(kept.back().step, 99'999);
  const auto has = [&kept](int64_t step) {
    return std::any_of(kept.begin(), kept.end(),
                       [step](const RunPoint& point) { return point.step == step; });
  };
  EXPECT_TRUE(has(31'234) && has(77'777) && has(55'555));
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(),
                             [](const RunPoint& a, const RunPoint& b) { return a.step < b.step; }));
  EXPECT_EQ(ThinOut(points, 100'000).size(), points.size());
  // As far apart as steps can be.
  const std::vector<RunPoint> apart = ThinOut(
      {{0, 0, 1}, {int64_t{1} << 62, 0, 2}, {(int64_t{1} << 62) + 1, 0, 3}, {INT64_MAX, 0, 4}}, 2);
  EXPECT_EQ(apart.front().step, 0);
  EXPECT_EQ(apart.back().step, INT64_MAX);
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(RunPage, HoldsCurvesSkipsAndRemarks) {
  const TempDir dir;
  std::string file = Number(1, "train/loss", 0.1F) + Number(1, "scaler0/skipped_steps", 0) +
                     Number(2, "train/loss", INFINITY) + Number(2, "scaler0/skipped_steps", 1) +
                     Number(3, "train/loss", NAN) + Number(4, "train/loss", 0.25F);
  dir.Write("x.tfevents", file + "cut");
  const Result run = Start("tools/halftone_dump", "--run " + dir.path());
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("{\"tag\":\"train/loss\",\"count\":4,\"least\":0.1,"
                                 "\"greatest\":0.25,\"steps\":[1,2,3,4],"
                                 "\"values\":[0.1,\"inf\",\"nan\",0.25]}"));
  EXPECT_THAT(run.out, HasSubstr("\"skips\":[[1,2,1]],\"skippedCount\":1,"));
  EXPECT_THAT(run.out, HasSubstr("\"firstStep\":1,\"lastStep\":4,\"started\":1700000001.0,"
                                 "\"seconds\":3.0}"));
  EXPECT_THAT(run.out, HasSubstr("x.tfevents ends within a record, as that of a killed program"));
  EXPECT_THAT(run.out, Not(HasSubstr("@DATA@")));
  for (const char* load : {"http:", "https:", "src=", "href=", "@import", "fetch(", "url("}) {
    EXPECT_THAT(run.out, Not(HasSubstr(load)));
  }
  EXPECT_THAT(run.out, HasSubstr("default-src 'none'"));
}

TEST(RunPage, NamesStayText) {
  RunHistory run;
  run.curves.push_back({"</script><script>document.title='broken'</script>\xff", {{1, 0, 1}}});
  const std::string page = ToHtml(run, "<!--<b>");
  EXPECT_EQ(Count(page, "</script>"), 2);
  EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003cscript>document.title='broken'"));
  EXPECT_THAT(page, HasSubstr("\"title\":\"\\u003c!--\\u003cb>\""));
}

TEST(RunPage, RefusesWrongOptions) {
  for (const char* beside : {"graph.txt", "--amp", "--format=json", "--after=cse"}) {
    const Result run = Start("tools/halftone_dump", std::string("--run=x ") + beside);
    EXPECT_EQ(run.status, 2) << beside;
    EXPECT_THAT(run.err, HasSubstr("--run: expected nothing beside it")) << beside;
  }
  const Result run = Start("tools/halftone_dump", "--run=/nowhere");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.err, "halftone_dump: /nowhere: no such folder\n");
}

// The document after its scripts; needs a browser, which the project does not.
std::string InBrowser(const TempDir& dir, const std::string& page, const std::string& script) {
  const std::string path = dir.Write("page.html", page + "<script>" + script + "</script>\n");
  const std::string command = Concat(
      "timeout 100 chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr"
      " --window-size=1200,1000 --virtual-time-budget=5000 --user-data-dir=",
      dir.Path("profile"), " --dump-dom 'file://", path, "' >", dir.Path("dom"), " 2>",
      dir.Path("log"));
  EXPECT_EQ(std::system(command.c_str()), 0) << Bytes(dir.Path("log"));
  EXPECT_THAT(Bytes(dir.Path("log")), Not(HasSubstr("CONSOLE"))) << "the page reports errors";
  return Bytes(dir.Path("dom"));
}

TEST(RunPageInBrowser, DrawsEveryKindOfRun) {
  if (std::system("command -v chromium >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "chromium is not installed";
  }
  const TempDir dir;
  RunHistory run;
  EXPECT_THAT(InBrowser(dir, ToHtml(run, "empty"), ""), HasSubstr("no numbers yet"));
  run.curves.push_back({"train/loss", {{1, 0, 2.5F}}});
  run.curves.push_back({"test/loss", {{1, 0, NAN}}});
  run.curves.push_back({"odd", {{1, 0, INFINITY}, {2, 0, -INFINITY}, {5, 0, 3e38F}}});
  run.curves.push_back(
      {"scaler0/scale", {{1, 0, 65536}, {2, 0, 65536}, {3, 0, 32768}, {5, 0, 32768}}});
  run.curves.push_back({"scaler0/skipped_steps", {{1, 0, 0}, {2, 0, 0}, {3, 0, 1}, {5, 0, 1}}});
  run.curves.push_back({"<img src=x onerror=document.title='broken'>", {{4, 0, -1}}});
  const std::string document = InBrowser(dir, ToHtml(run, "run"), R"(
    document.getElementById('logarithmic').click();
    document.getElementById('smoothing').value = 0.9;
    document.getElementById('smoothing').dispatchEvent(new Event('input'));
    const all = [...document.querySelectorAll('path')].map((path) => path.getAttribute('d'));
    document.body.dataset.broken = all.filter((d) => /NaN|undefined|Infinity/.test(d)).length;
    document.body.dataset.figures = document.querySelectorAll('figure').length;
    document.body.dataset.skips = document.querySelectorAll('.skips').length;
  )");
  EXPECT_THAT(document, HasSubstr("<title>run</title>"));
  EXPECT_THAT(document, HasSubstr("data-broken=\"0\" data-figures=\"5\" data-skips=\"5\""));
  EXPECT_THAT(document, HasSubstr("1 step skipped"));
  EXPECT_EQ(Count(document, "<img"), 0);
}

class RunLogOfExample : public ::testing::Test {
 protected:
  void SetUp() override { testing::WriteImageSet(dir_.Path("data"), 24); }
  Result Train(const std::string& folder, const std::string& before = "") const {
    return Start("examples/fashion_mnist",
                 Concat("--data=", dir_.Path("data"),
                        " --batch=8 --epochs=2 --threads=1 --amp=f16 --log=", folder),
                 before);
  }
  const TempDir dir_;
};

TEST_F(RunLogOfExample, HasEveryNumberOfEveryStep) {
  const Result trained = Train(dir_.Path("run"));
  ASSERT_EQ(trained.status, 0) << trained.err;
  const auto run = ReadRun(dir_.Path("run"));
  ASSERT_TRUE(run.ok()) << run.status();
  std::vector<std::string> tags;
  for (const RunCurve& curve : run->curves) {
    tags.push_back(Concat(curve.tag, " ", curve.points.size()));
  }
  EXPECT_THAT(tags,
              ElementsAre("train/loss 6", "train/accuracy 6", "optimizer0/learning_rate 6",
                          "optimizer0/grad_norm 6", "scaler0/scale 6", "scaler0/skipped_steps 6",
                          "speed/images_per_second 5", "test/accuracy 2"));
  EXPECT_THAT(ValuesOf(run->curves[2]), ::testing::Each(1e-3F));
  EXPECT_THAT(run->curves[0].points[0].value, ::testing::FloatNear(std::log(10.0F), 0.5F));
  EXPECT_EQ(run->curves[7].points[0].step, 3);
  EXPECT_EQ(run->curves[7].points[1].step, 6);
}

TEST_F(RunLogOfExample, NeverEndsTheTraining) {
  constexpr char kNote[] = "halftone: note: run log: nothing is logged any more: ";
  // As on a full disk: files may have a KiB.
  const Result full = Train(dir_.Path("run"), "ulimit -f 2;");
  EXPECT_EQ(full.status, 0) << full.err;
  EXPECT_EQ(Count(full.err, kNote), 1) << full.err;
  EXPECT_THAT(full.err, HasSubstr(": cannot write: File too large\n"));
  EXPECT_TRUE(ReadRun(dir_.Path("run")).ok());
  const Result refused = Train("/proc/none");
  EXPECT_EQ(refused.status, 0) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr(std::string(kNote) + "/proc/none: cannot make the folder: "));
}

}  // namespace
}  // namespace halftone::tools
