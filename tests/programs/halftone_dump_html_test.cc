// The page of halftone_dump --format html: what is in it, and what a browser makes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "halftone/core/strings.h"
#include "halftone/tests/programs/image_set.h"
#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// A step in modules: two that read each other's nodes (a, b), one in another, one that is deep.
constexpr char kStep[] =
    "graph @step(%x: f32[8,4], %t: i64[8]) {\n"
    "  %w = variable \"fc.weight\" : f32[4,4] @\"net/fc\"\n"
    "  %y = linear(%x, %w) @\"net/fc\"\n"
    "  %r = relu(%y) @\"net/act\"\n"
    "  %a0 = neg(%r) @\"a\"\n"
    "  %b0 = exp(%a0) @\"b\"\n"
    "  %a1 = add(%b0, %a0) @\"a\"\n"
    "  %b1 = mul(%a1, %b0) @\"b/deep/er\"\n"
    "  %l, %s = cross_entropy(%b1, %t)\n"
    "  backward(%l)\n"
    "  amp() {dtype=bf16}\n"
    "  %n, %applied = optimizer() {params=[\"fc.weight\"], rule=\"sgd\"}\n"
    "  return loss=%l, %applied\n"
    "}\n";

// Everything that a file may call freely is called something that ends scripts and starts others.
constexpr char kHostile[] =
    "graph @hostile(%x \"<b>x</b>\": f32[4]) {\n"
    "  %w = variable \"</script><script>document.title='broken'</script>\" : f32[4] "
    "@\"<img src=x onerror=document.title='broken'>/<!--\"\n"
    "  %y = add(%x, %w) : f32[4] @\"--></svg><script>document.title='broken'</script>\" "
    "loc(\"<i>\":1) pass(\"insert-optimizers\",\"<u>&amp;\\\"'\") "
    "amp(clear,f32,\"fp32: <script>document.title='broken'</script> \xe2\x80\xa8 \xff\")\n"
    "  return %y\n"
    "}\n";

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class HalftoneDumpHtml : public ::testing::Test {
 protected:
  std::string Page(const std::string& graph, const std::string& options = "") {
    const Result run = Start("tools/halftone_dump",
                             folder_.Write("graph.txt", graph) + " --format=html " + options);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  }
  const TempDir folder_;
};

TEST_F(HalftoneDumpHtml, HoldsEveryNodeAndEveryTable) {
  const std::string page = Page(kStep);
  EXPECT_THAT(page, HasSubstr("<!DOCTYPE html>\n"));
  for (const char* node :
       {"x", "t", "w", "y", "r", "a0", "b0", "a1", "b1", "l", "backward", "amp", "n"}) {
    EXPECT_EQ(Count(page, Concat("\"name\":\"", node, "\"")), 1) << node;
  }
  EXPECT_EQ(Count(page, "{\"id\":"), 13);
  EXPECT_THAT(page, HasSubstr("\"path\":\"b/deep/er/b1\""));
  EXPECT_THAT(page, HasSubstr("\"returns\":[\"loss\"]"));
  // linear: 2 * 8 * 4 * 4 multiplications and additions, no bias.
  EXPECT_THAT(page, ContainsRegex("\"name\":\"y\"[^}]*\"flops\":256.0"));
  EXPECT_THAT(page, HasSubstr("\"planned\":false"));
  // The decisions that the passes would take.
  EXPECT_THAT(page, HasSubstr("\"path\":\"net/fc/y\",\"dtype\":\"bf16\",\"low\":true,"
                              "\"class\":\"allow\""));
  EXPECT_THAT(page, Not(HasSubstr("@DATA@")));
  EXPECT_THAT(page, Not(ContainsRegex("@[a-z]+\\.(js|css)@")));
}

TEST_F(HalftoneDumpHtml, LoadsNothing) {
  const std::string page = Page(kStep, "--after=assign-layouts");
  for (const char* load : {"http:", "https:", "src=", "href=", "@import", "fetch(", "XMLHttp"}) {
    EXPECT_THAT(page, Not(HasSubstr(load)));
  }
  EXPECT_EQ(Count(page, "url("), Count(page, "url(#arrow)"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST_F(HalftoneDumpHtml, ColoursByWhatNodesComputeIn) {
  const std::string page = Page(
      "graph @kinds(%x: f32[4,4], %i: i64[4]) {\n"
      "  %c = cast(%x) {to=bf16}\n"
      "  %m = matmul(%c, %c) {out=\"f32\"}\n"
      "  %e = exp(%m)\n"
      "  %a = argmax(%e) {axis=1}\n"
      "  return %a\n"
      "}\n");
  EXPECT_THAT(page, ContainsRegex("\"name\":\"c\"[^}]*\"kind\":\"cast\""));
  EXPECT_THAT(page, ContainsRegex("\"name\":\"m\"[^}]*\"kind\":\"low\""));  // of 16-bit operands
  EXPECT_THAT(page, ContainsRegex("\"name\":\"e\"[^}]*\"kind\":\"f32\""));
  EXPECT_THAT(page, ContainsRegex("\"name\":\"a\"[^}]*\"kind\":\"other\""));
}

TEST_F(HalftoneDumpHtml, SortsNodesIntoPhases) {
  const std::string page = Page(kStep, "--after=assign-layouts");
  EXPECT_THAT(page, ContainsRegex("\"op\":\"linear\"[^}]*\"phase\":\"forward\""));
  EXPECT_THAT(page, ContainsRegex("\"op\":\"cross_entropy_grad\"[^}]*\"phase\":\"backward\""));
  EXPECT_THAT(page, ContainsRegex("\"op\":\"sgd_update\"[^}]*\"phase\":\"update\""));
}

TEST_F(HalftoneDumpHtml, NamesStayText) {
  const std::string page = Page(kHostile);
  // The two script elements of the page itself, and no "<" in its data.
  EXPECT_EQ(Count(page, "</script>"), 2);
  EXPECT_EQ(Count(page, "<script"), 2);
  const size_t data = page.find("<script id=\"data\"");
  const size_t begin = page.find('>', data) + 1;
  const std::string json = page.substr(begin, page.find("</script>", begin) - begin);
  EXPECT_THAT(json, Not(HasSubstr("<")));
  EXPECT_THAT(json, AllOf(HasSubstr("\\u003c/script>\\u003cscript>document.title='broken'"),
                          HasSubstr("\\u2028"), HasSubstr("\\ufffd")));
  for (unsigned char c : json) ASSERT_LT(c, 0x80);
}

TEST_F(HalftoneDumpHtml, RefusesAGraphWhoseDecisionsFail) {
  const Result run = Start("tools/halftone_dump",
                           folder_.Write("bad.txt",
                                         "graph @bad(%x: f32[2]) {\n"
                                         "  amp() {deny=[\"reshape[color=1]\"], dtype=bf16}\n"
                                         "  return %x\n"
                                         "}\n") +
                               " --format=html");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("pass insert-amp-casts: "));
  EXPECT_EQ(run.out, "");
}

// The rest needs a browser; the project does not.
class HalftoneDumpBrowser : public HalftoneDumpHtml {
 protected:
  void SetUp() override {
    if (std::system("command -v chromium >/dev/null 2>&1") != 0) {
      GTEST_SKIP() << "chromium is not installed";
    }
  }

  // Opens the page, runs `script` after those of the page, and leaves what the browser says to
  // log_. Gives the document as it is then.
  std::string Run(const std::string& page, const std::string& fragment, const std::string& script) {
    const std::string path = folder_.Write("page.html", page + "<script>" + script + "</script>\n");
    const std::string command = Concat(
        "timeout 100 chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr"
        " --window-size=1600,1000 --virtual-time-budget=5000 --user-data-dir=",
        folder_.Path("profile"), " --dump-dom 'file://", path, fragment, "' >", folder_.Path("dom"),
        " 2>", folder_.Path("log"));
    EXPECT_EQ(std::system(command.c_str()), 0) << Bytes(folder_.Path("log"));
    log_ = Bytes(folder_.Path("log"));
    return Bytes(folder_.Path("dom"));
  }

  // The same, without complaints.
  std::string Open(const std::string& page, const std::string& fragment,
                   const std::string& script = "") {
    std::string document = Run(page, fragment, script);
    EXPECT_THAT(log_, Not(HasSubstr("CONSOLE"))) << "the page reports errors";
    return document;
  }

  static int CountFound(const std::string& document) {
    return Count(document, " hit\"") + Count(document, " hit selected\"");
  }

  std::string log_;
};

// Counts nodes that overlap, and nodes outside of the drawing.
constexpr char kMeasure[] = R"(
  const boxes = [...document.querySelectorAll('#nodes > .node > rect')].map((rect) => {
    const [x, y, w, h] = ['x', 'y', 'width', 'height'].map((k) => Number(rect.getAttribute(k)));
    return {left: x, right: x + w, top: y, bottom: y + h};
  });
  const [, , width, height] = document.getElementById('graph').getAttribute('viewBox').split(' ');
  let overlaps = 0;
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
    if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom) ++overlaps;
  }));
  const outside = boxes.filter((box) => !(box.left >= 0 && box.top >= 0 && box.right <= width &&
                                          box.bottom <= height)).length;
  document.body.dataset.measured = `nodes ${boxes.length}, ${overlaps} overlaps, ${outside} out`;
)";

TEST_F(HalftoneDumpBrowser, TheChecksSeeFaults) {
  const std::string document =
      Run(Page(kStep), "",
          std::string("const moved = document.querySelector('#n4 > rect');"
                      "const other = document.querySelector('#n5 > rect');"
                      "for (const side of ['x', 'y'])"
                      "  moved.setAttribute(side, other.getAttribute(side));"
                      "document.querySelector('#n6 > rect')"
                      "  .setAttribute('x', -1);") +
              kMeasure + "throw new Error('planted');");
  EXPECT_THAT(document, HasSubstr("data-measured=\"nodes 13, 1 overlaps, 1 out\""));
  EXPECT_THAT(log_, HasSubstr("CONSOLE"));
  EXPECT_THAT(log_, HasSubstr("planted"));
}

TEST_F(HalftoneDumpBrowser, DrawsEveryNodeApart) {
  const std::string dom = Open(Page(kStep), "", kMeasure);
  EXPECT_THAT(dom, HasSubstr("data-measured=\"nodes 13, 0 overlaps, 0 out\""));
  for (int id = 0; id < 13; ++id) EXPECT_EQ(Count(dom, Concat("id=\"n", id, "\"")), 1) << id;
  EXPECT_THAT(dom, HasSubstr("<title>@step</title>"));
  const std::string lowered = Open(Page(kStep, "--after=assign-layouts"), "", kMeasure);
  EXPECT_THAT(lowered, HasSubstr(", 0 overlaps, 0 out\""));
  EXPECT_THAT(lowered, AllOf(HasSubstr("class=\"node low\""), HasSubstr("class=\"node f32\""),
                             HasSubstr("class=\"node cast\"")));
  // The chart, and a row for each decision.
  EXPECT_THAT(lowered, HasSubstr("<path class=\"area\""));
  EXPECT_THAT(lowered, HasSubstr("<td class=\"low\">bf16</td>"));
}

// %b0 and %b1 are in module b; only %b0 is an exp.
TEST_F(HalftoneDumpBrowser, FindsWhatTheAddressAsksFor) {
  const std::string page = Page(kStep);
  const std::string one = Open(page, "#q=exp%20b%2F");
  EXPECT_THAT(one, HasSubstr("<output id=\"found\">1 of 1</output>"));
  EXPECT_EQ(Count(one, "class=\"node f32 hit selected\""), 1);
  EXPECT_EQ(CountFound(one), 1);
  EXPECT_THAT(one, HasSubstr("%b0 = exp(%a0)"));
  const std::string both = Open(page, "#q=b%2F");
  EXPECT_THAT(both, HasSubstr("<output id=\"found\">1 of 2</output>"));
  EXPECT_EQ(CountFound(both), 2);
  const std::string none = Open(page, "#q=convolution");
  EXPECT_THAT(none, HasSubstr("<output id=\"found\">not found</output>"));
  EXPECT_EQ(CountFound(none), 0);
}

TEST_F(HalftoneDumpBrowser, OpensAClosedModuleToShowWhatIsFound) {
  const std::string page = Page(kStep);
  // Four modules at the top: net, a, b/..., each one box when closed.
  const std::string closed = Open(page, "", "document.getElementById('fold').click();");
  EXPECT_THAT(closed, AllOf(HasSubstr("class=\"module closed\""), Not(HasSubstr(">%b1<"))));
  const std::string opened = Open(page, "",
                                  "document.getElementById('fold').click();"
                                  "location.hash = '#q=b1';"
                                  "document.getElementById('next').click();");
  EXPECT_THAT(opened, HasSubstr("<output id=\"found\">1 of 1</output>"));
  EXPECT_THAT(opened, HasSubstr(">%b1<"));
}

// A row of the table of decisions, the last step of the chart, an operand of the node shown.
TEST_F(HalftoneDumpBrowser, TablesChartAndNodesLeadToNodes) {
  const std::string document = Open(Page(kStep), "", R"(
    const shown = [];
    const note = () => shown.push(document.querySelector('#node dd').textContent.split(' ')[0]);
    [...document.querySelectorAll('#amp tr')].find((row) => row.textContent.startsWith('net/act/r'))
        .click();
    note();
    const place = document.getElementById('chart').getBoundingClientRect();
    document.getElementById('chart').dispatchEvent(
        new MouseEvent('click', {clientX: place.right - 8, clientY: place.top + 20}));
    note();
    document.getElementById('n4').dispatchEvent(new MouseEvent('click'));
    note();
    document.querySelector('#node a').click();
    note();
    document.body.dataset.shown = shown.join(' ');
  )");
  EXPECT_THAT(document, HasSubstr("data-shown=\"%r %n, %r %y\""));
}

// As a user gets there: a program dumps its training step, the page shows it.
TEST_F(HalftoneDumpBrowser, ShowsTheStepOfAnExample) {
  constexpr int kImages = 8;
  WriteImageSet(folder_.path(), kImages);
  const Result trained =
      Start("examples/fashion_mnist",
            Concat("--data=", folder_.path(), " --batch=", kImages,
                   " --epochs=1 --threads=1 --amp=bf16 --dump=", folder_.Path("dumps")));
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Result page =
      Start("tools/halftone_dump", folder_.Path("dumps/fashion_cnn_0") + " --format=html");
  ASSERT_EQ(page.status, 0) << page.err;
  const std::string document = Open(page.out, "#q=conv2d_grad_input", kMeasure);
  EXPECT_THAT(document, HasSubstr("<output id=\"found\">1 of "));
  EXPECT_THAT(document, HasSubstr("fashion_mnist.cc:"));  // where the found node was written
  EXPECT_THAT(document, ContainsRegex("data-measured=\"nodes [0-9]+, 0 overlaps, 0 out\""));
  EXPECT_THAT(document, HasSubstr("<td class=\"low\">bf16</td>"));
}

TEST_F(HalftoneDumpBrowser, HostileNamesAreShownAsTheyAre) {
  const std::string dom = Open(Page(kHostile), "#q=%3Cimg", kMeasure);
  EXPECT_THAT(dom, HasSubstr("<title>@hostile</title>"));
  EXPECT_THAT(dom, HasSubstr("<output id=\"found\">1 of 1</output>"));
  EXPECT_THAT(dom, HasSubstr("data-measured=\"nodes 3, 0 overlaps, 0 out\""));
  EXPECT_EQ(Count(dom, "<script"), 3);  // those of the page, and the one added here
  for (const char* element : {"<img", "<b>", "<i>", "<u>"}) EXPECT_EQ(Count(dom, element), 0);
}

}  // namespace
}  // namespace halftone::testing
