// SPDX-License-Identifier: MIT
//
// The list of forms. Some options mean something only with others: those words go with them.

#include "common/harness/run/chapter_forms.h"

#include <algorithm>

#include "common/harness/base/text.h"
#include "common/harness/run/choices.h"

namespace gg {

using WordsOfForm = std::vector<std::string>;

namespace {

bool is_scaled(const Chapter& chapter) { return has(chapter.options, "format"); }

// D of FP8 in blocks with scales.
WordsOfForm with_scaled_d(const Chapter& chapter, const WordsOfForm& more) {
  WordsOfForm words = is_scaled(chapter) ? WordsOfForm{"--format", "mxfp8"} : WordsOfForm{};
  for (const char* word : {"--d-dtype", "e4m3", "--norm-const", "0.01"}) words.push_back(word);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void add_formats(const Chapter& chapter, const std::vector<Formats>& formats,
                 std::vector<WordsOfForm>& forms) {
  const char* const option = is_scaled(chapter) ? "--format" : "--in-dtype";
  for (size_t i = 1; i < formats.size(); ++i)
    forms.push_back({option, formats[i].name(), "--d-dtype", format_info(formats[i].d).name});
}

// Adding to D, in each of its types.
void add_accumulate(const std::vector<Formats>& formats, std::vector<WordsOfForm>& forms) {
  forms.push_back({"--accumulate"});
  const auto other = std::find_if(formats.begin(), formats.end(),
                                  [&](const Formats& each) { return each.d != formats[0].d; });
  if (other == formats.end()) return;
  forms.push_back({"--in-dtype", other->name(), "--d-dtype", format_info(other->d).name, "--accumulate"});
}

// The values of an option but the first, which is the default.
void add_others(const char* option, const WordsOfForm& values, std::vector<WordsOfForm>& forms) {
  for (size_t i = 1; i < values.size(); ++i) forms.push_back({option, values[i]});
}

void add_layouts(const Chapter& chapter, std::vector<WordsOfForm>& forms) {
  const WordsOfForm names = b_layout_names(chapter);
  for (size_t i = 1; i < names.size(); ++i) {
    // Elements of 4 bits lie along K.
    const bool wants_8_bits = names[i] == "kn" && is_scaled(chapter);
    forms.push_back(wants_8_bits ? WordsOfForm{"--format", "mxfp8", "--b-layout", "kn"}
                                 : WordsOfForm{"--b-layout", names[i]});
  }
}

void add_tiles(const Chapter& chapter, std::vector<WordsOfForm>& forms) {
  for (int i = chapter.chooses_tile ? 0 : 1; i < chapter.tiles.size(); ++i) {
    WordsOfForm words = {"--tile", tile_name(chapter.tiles[i])};
    if (!cluster_names(chapter).empty()) {
      words.push_back("--cluster");
      words.push_back(cluster_name(chapter.tiles[i]));
    }
    forms.push_back(words);
  }
}

void add_epilogue(const Chapter& chapter, std::vector<WordsOfForm>& forms) {
  const EpilogueChoices& e = chapter.epilogue;
  if (e.sfd_row)
    forms.push_back(with_scaled_d(chapter, e.bias_types.empty() ? WordsOfForm{} : WordsOfForm{"--bias"}));
  for (const std::string& type : type_names(e.bias_types)) forms.push_back({"--bias", "--bias-dtype", type});
  if (e.bias_types.size() == 1) forms.back() = {"--bias"};
  if (e.sfd_col) forms.push_back(with_scaled_d(chapter, {"--discrete-col-sfd"}));
  add_others("--act", activation_names(chapter), forms);
  add_others("--c-dtype", type_names(e.c_types), forms);
  if (e.butterfly) forms.push_back({"--transform", "butterfly"});
}

}  // namespace

std::vector<WordsOfForm> forms_of(const Chapter& chapter, const std::vector<Formats>& formats) {
  std::vector<WordsOfForm> forms;
  add_formats(chapter, formats, forms);
  add_tiles(chapter, forms);
  for (const OwnNumber& own : chapter.numbers)
    add_others(("--" + std::string(own.name)).c_str(), number_names(own), forms);
  add_layouts(chapter, forms);
  for (const std::string& idea : idea_names(chapter)) forms.push_back({"--off", idea});
  if (chapter.dynamic_schedule) forms.push_back({"--schedule", "dynamic"});
  if (chapter.discrete_weights) forms.push_back({"--weights", "discrete"});
  if (has(chapter.options, "offsets")) forms.push_back({"--offsets", "i64"});
  if (has(chapter.options, "accumulate")) add_accumulate(formats, forms);
  if (has(chapter.options, "shared-b")) forms.push_back({"--shared-b"});
  if (has(chapter.options, "blocks")) forms.push_back({"--blocks", "3"});
  add_epilogue(chapter, forms);
  return forms;
}

Options options_of_form(const WordsOfForm& form, const Chapter& chapter,
                        const std::vector<Formats>& formats) {
  WordsOfForm words = form;
  std::vector<char*> argv = {nullptr};  // a program's name, which nobody reads
  for (std::string& word : words) argv.push_back(word.data());
  Options options = parse_options(int(argv.size()), argv.data(), chapter, formats);
  options.arguments = nullptr;  // these end here
  return options;
}

}  // namespace gg
