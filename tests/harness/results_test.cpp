// SPDX-License-Identifier: MIT
//
// CSV files: the columns readers and plots rely on, and files that are appended to or left alone.

#include <gtest/gtest.h>

#include "common/harness/run/report.h"
#include "tests/process.h"

namespace gg {
namespace {

using testing_gg::Folder;
using testing_gg::text_of;

const char* const kHeader =
    "chapter,kernel,device,arch,clock_mhz,cuda,commit,date,set,groups,m_total,m_max,n,k,format,warm,us_"
    "median,"
    "us_p10,us_p90,tflops,gbytes_per_s,roof_tflops,roof_kind,prep_us,peer,ok,clock_after_mhz,power_w,"
    "version\n";

TEST(Csv, HeaderIsThatOfTheContract) {
  const Folder folder;
  append_csv(folder.at("x.csv"), kResultColumns, {});
  EXPECT_EQ(text_of(folder.at("x.csv")), kHeader);
}

TEST(Csv, RowsAreAppendedAndFieldsQuoted) {
  const Folder folder;
  const std::string path = folder.at("x.csv");
  append_csv(path, {"set", "m", "note"}, {{{"set", "own"}, {"m", "5"}}});
  append_csv(path, {"set", "m", "note"}, {{{"note", "a \"b\", c"}}, {{"m", "7"}, {"unknown", "8"}}});
  EXPECT_EQ(text_of(path), "set,m,note\nown,5,\n,,\"a \"\"b\"\", c\"\n,7,\n");
}

TEST(Csv, AFileWithoutItsLastLineBreakGetsOne) {
  const Folder folder;
  const std::string path = folder.at("x.csv");
  testing_gg::write_text(path, "set,m\nown,5");
  append_csv(path, {"set", "m"}, {{{"m", "7"}}});
  EXPECT_EQ(text_of(path), "set,m\nown,5\n,7\n");
}

TEST(Csv, AnotherHeaderIsRefusedAndTheFileLeftAlone) {
  const Folder folder;
  const std::string path = folder.at("x.csv"), content = "set,rows\nown,5\n";
  testing_gg::write_text(path, content);
  for (const auto& call : {+[](const std::string& p) {
                             append_csv(p, kResultColumns, {{{"set", "own"}}});
                           },
                           +[](const std::string& p) { require_csv(p, kResultColumns); }}) {
    const auto error = testing_gg::error_of([&] { call(path); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, Exit::bad_input);
    EXPECT_NE(std::string(error->what()).find("'set,rows'"), std::string::npos) << error->what();
    EXPECT_EQ(text_of(path), content);
  }
}

TEST(Csv, RequireWritesNothing) {
  const Folder folder;
  require_csv(folder.at("x.csv"), kResultColumns);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
  testing_gg::write_text(folder.at("y.csv"), kHeader);
  require_csv(folder.at("y.csv"), kResultColumns);
  EXPECT_EQ(text_of(folder.at("y.csv")), kHeader);
}

TEST(Roof, IsReadForThisDeviceOnly) {
  const Folder folder;
  const std::string path = folder.at("roof.csv");
  append_csv(path, kRoofColumns,
             {{{"device", "ours"}, {"what", "copy"}, {"value", "4100"}},
              {{"device", "ours"}, {"what", "bf16"}, {"value", "750.5"}},
              {{"device", "another"}, {"what", "bf16"}, {"value", "1"}}});
  const Roof roof = read_roof(path, "ours");
  EXPECT_EQ(roof.gbytes_per_s, 4100);
  EXPECT_EQ(roof.tflops, (std::map<std::string, double>{{"bf16", 750.5}}));
  EXPECT_EQ(roof.tflops_of(Format::bf16), 750.5);
  EXPECT_EQ(roof.tflops_of(Format::e5m2), 0);
  const Roof blackwell = {.tflops = {{"e4m3", 4000}}};
  EXPECT_EQ(blackwell.tflops_of(Format::e5m2), 4000) << "one instruction takes both";
  EXPECT_EQ(blackwell.tflops_of(Format::e2m1), 0);
  EXPECT_TRUE(read_roof(folder.at("none.csv"), "ours").tflops.empty());
}

TEST(Roof, ADamagedFileIsNoRoofAndNoCrash) {
  const Folder folder;
  const std::string path = folder.at("roof.csv");
  append_csv(path, kRoofColumns, {{{"device", "ours"}, {"what", "copy"}, {"value", "fast"}}});
  EXPECT_EQ(read_roof(path, "ours").gbytes_per_s, 0);
  testing_gg::write_text(path, "device,what\nours,copy\n");
  EXPECT_EQ(read_roof(path, "ours").gbytes_per_s, 0);
}

}  // namespace
}  // namespace gg
