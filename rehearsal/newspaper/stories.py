"""What is news: kinds of stories with their headlines, leads and developments."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Story:
    """A kind of story; its lead states the facts of its frame."""

    frame: str
    headlines: tuple[str, ...]
    later: tuple[str, ...]  # headlines of the stories that follow
    leads: tuple[str, ...]
    follow_ups: tuple[str, ...]
    developments: tuple[str, ...]
    topic: str


STORIES: dict[str, Story] = {
    "appointment": Story(
        "job",
        (
            "{O} names {P:f} {T}",
            "{P:f} to lead at {O}",
            "New {T} for {O}",
            "{O} turns to an outsider",
        ),
        (
            "After a change at the top, {O} takes stock",
            "{P:f} sets out plans for {O}",
            "First weeks of {P:f} at {O}",
        ),
        (
            "{O} named {P:f} as its {T} on {W}, ending months of speculation.",
            "{P:f} was appointed {T:b} {of:O} on {W}, according to a statement.",
            "{O} said on {W} that {P:f} would become its {T} with immediate effect.",
            "The board of {O} has chosen {P:f} as {T}, people at the meeting said on {W}.",
        ),
        (
            "A week after {P:f} became {T:b} {of:O}, the first changes are visible.",
            "{P:f}, the new {T:b} {of:O}, presented a first set of plans on {W}.",
            "{P:f} told employees on {W} what {P.he} intends to do as {T} of {O}.",
        ),
        (
            "The vote was unanimous, two people who took part said.",
            "The search had lasted {few} months and cost more than planned.",
            "At least three other candidates were interviewed.",
            "The contract runs for four years and may be extended once.",
            "Staff were told in a short e-mail message before breakfast.",
            "An internal memo promised “evolution rather than revolution.”",
            "Unions asked for an early meeting.",
            "Outside the building, a small group of pensioners handed out leaflets.",
            "The previous holder of the post left in the winter for health reasons.",
        ),
        "business",
    ),
    "acquisition": Story(
        "subsidiary",
        (
            "{O} seals purchase of {Q}",
            "{O} swallows {Q}",
            "Regulators wave through sale of {Q}",
            "{Q} finds a buyer",
        ),
        (
            "{O} and {Q}, weeks after the deal",
            "At {Q}, a new owner and old habits",
            "{O} keeps name of {Q}",
        ),
        (
            "{O} completed its purchase of {Q} on {W}, making it a wholly owned subsidiary.",
            "{Q} became a unit of {O} on {W} after shareholders approved a deal worth {money}.",
            "{O} has bought {Q} for {money}, the two companies announced on {W}.",
            "After eight months of talks, {O} took full control of {Q} on {W}.",
        ),
        (
            (
                "Integration of {Q} into its new owner, {O}, is going faster than planned, managers"
                " said on {W}."
            ),
            "{O} said on {W} that its new subsidiary {Q} would keep its name.",
            "Unions at {Q}, which now belongs to {O}, demanded guarantees on {W}.",
        ),
        (
            "The price is {pct} percent above the average of the past three months.",
            "Regulators had asked for the sale of two warehouses.",
            "About {staff} jobs are at risk, according to the works council.",
            "Analysts called the price steep but not absurd.",
            "Trading in the shares was suspended for an hour.",
            "The deal is financed by loans from a group of {few} banks.",
            "Customers will notice little, a letter to them said.",
            "Two earlier attempts had failed over pensions.",
            "The buyer expects savings of {money} a year.",
        ),
        "business",
    ),
    "stake": Story(
        "stake",
        (
            "{O} discloses stake in {Q}",
            "{O} emerges as investor in {Q}",
            "Filing reveals who owns {Q}",
        ),
        ("{O} plays down talk about {Q}", "{Q} and its investor"),
        (
            "{O} disclosed on {W} that it holds {pct} percent of {Q}.",
            "A regulatory filing on {W} showed that {O} owns {pct} percent of the shares of {Q}.",
        ),
        (
            "{O} said on {W} that it would keep its shares in {Q} for the long term.",
            "{O}, which owns {pct} percent of {Q}, voted against the accounts on {W}.",
            "Talks between {Q} and its shareholder {O} ended without a result on {W}.",
        ),
        (
            "The purchases were made in small lots over {few} weeks.",
            "Under local rules, any holding above 3 percent must be reported.",
            "The market value of the position is about {money}.",
            "The annual meeting is set for the end of next month.",
            "Traders had guessed at a different buyer.",
            "The share price rose {pct} percent before falling back.",
        ),
        "business",
    ),
    "investor": Story(
        "shares",
        ("{P:f} builds holding in {O}", "Who is buying {O}?", "{P:f} raises stake in {O}"),
        (
            "{P:f} wants a voice at {O}",
            "At {O}, an investor loses patience",
            "Showdown looms at {O}",
        ),
        (
            "{P:f} has bought {pct} percent of {O}, a filing showed on {W}.",
            "{P:f} raised {P.his} stake in {O} to {pct} percent on {W}, surprising the market.",
        ),
        (
            "{P:f}, who owns {pct} percent of {O}, asked for a seat on the board on {W}.",
            "{P:f}, a shareholder of {O}, called for a special meeting on {W}.",
            (
                "The board of {O} met {P:f}, one of its largest shareholders, behind closed doors"
                " on {W}."
            ),
        ),
        (
            "The purchase cost about {money} at current prices.",
            "The shares had lost a third of their value since winter.",
            "Small investors welcomed the news in online forums.",
            "A second filing is expected within {few} days.",
            "The board said it had learned of the purchase from the press.",
        ),
        "business",
    ),
    "obituary": Story(
        "death",
        ("{P:f}, who shunned the limelight, dies", "{P:f} dies in {C}", "A life in full: {P:f}"),
        ("Farewell to {P:f}", "Many mourn {P:f}"),
        (
            "{P:f}, who rose from poverty to quiet influence, died in {C} on {D}.",
            "{P:f} died on {D} in {C}, the family said in a statement.",
            "{P:f}, admired and feared in equal measure, died in {C} on {D} after a short illness.",
        ),
        (
            "Several hundred people gathered on {W} to remember {P:f}, who died in {C} on {D}.",
            "A street may soon bear the name of {P:f}, who died in {C} on {D}.",
        ),
        (
            "The cause was complications of pneumonia.",
            "A private service will be held next week.",
            "Tributes came from rivals as well as friends.",
            "No public funeral is planned, in keeping with a last wish.",
            "The family asked for donations to a hospice instead of flowers.",
            "Those who worked there in the early days remember long hours and good coffee.",
            "There were failures, too, and debts that took years to repay.",
            "Recognition came late, and was received with a shrug.",
        ),
        "tribute",
    ),
    "family": Story(
        "parent",
        (
            "{Q:f} steps out of a long shadow",
            "Like {P.father}, like {Q.son}",
            "In the {P:l} family, a change of guard",
        ),
        ("{P:l} papers to be opened", "{Q:f} and the weight of a name"),
        (
            (
                "{Q:f} grew up as the {Q.son} of {P:f}, and for years that was all anybody wrote"
                " about {Q.him}."
            ),
            "{P:f} handed {P.his} papers to {P.his} {Q.son}, {Q:f}, at a brief ceremony on {W}.",
            "{Q:f} has spent a lifetime being introduced as {P:f}’s {Q.son}.",
        ),
        (
            (
                "{Q:f}, {Q.son} of {P:f}, said on {W} that the family archive would be"
                " opened to scholars."
            ),
            "Scholars were shown the first papers of {P:f} on {W} by {P.his} {Q.son}, {Q:f}.",
        ),
        (
            "The house, full of clocks, has been in the family for four generations.",
            "There was no speech, only coffee and a group photograph.",
            "Friends describe a household where dinner was an examination.",
            "The archive fills {num} boxes.",
            "A biography is due to appear next year.",
            "Not everybody in town was pleased.",
        ),
        "tribute",
    ),
    "wedding": Story(
        "spouse",
        ("{P:f} and {Q:f}: a partnership", "At home with {P:f}", "Behind {P:f}, an equal"),
        ("A prize from {P:f} and {Q:f}", "{P:f} and {Q:f} give something back"),
        (
            "{P:f} and {P.his} {Q.husband}, {Q:f}, opened their garden to visitors on {W}.",
            "{P:f}, who married {Q:f} in {Y}, gave a rare interview on {W}.",
            (
                "{Q:f} has been married to {P:f} since {Y} and has never given an"
                " interview, until now."
            ),
        ),
        (
            (
                "{P:f} and {P.his} {Q.husband}, {Q:f}, announced on {W} that they would endow a"
                " prize for young writers."
            ),
            "{Q:f}, the {Q.husband} of {P:f}, chaired a jury for the first time on {W}.",
        ),
        (
            "The couple met at a tram stop in the rain.",
            "Visitors queued for up to {few} hours.",
            "The garden contains more than {num} kinds of roses.",
            "The two disagree about music, politics and the right way to boil an egg.",
            "Proceeds go to the local fire brigade.",
        ),
        "tribute",
    ),
    "launch": Story(
        "founded",
        ("{O} marks anniversary", "How {P:f} built {O}", "The improbable rise of {O}"),
        ("{O}, an unvarnished history", "{O} looks back"),
        (
            "When {P:f} founded {O} in {Y}, the bank refused a loan three times.",
            "{O}, founded by {P:f} in {Y}, celebrated its anniversary on {W} with a modest party.",
            (
                "{P:f}, the founder of {O}, told employees on {W} that the hard part was"
                " still to come."
            ),
        ),
        (
            (
                "{O} published a history of its first years on {W}, and its founder, {P:f},"
                " is not spared."
            ),
            "Early employees of {O}, which {P:f} founded in {Y}, met for a reunion on {W}.",
        ),
        (
            "The first year brought a loss and a flood.",
            "The breakthrough came with an order nobody else wanted.",
            "Today it has customers in {num} countries.",
            "Some of the earliest employees still work there.",
            "Competitors complain about its prices.",
            "A museum has asked for the first machine.",
            "Annual sales are estimated at {money}.",
        ),
        "business",
    ),
    "membership": Story(
        "member",
        ("{O} admits {Q}", "{Q} joins {O}", "{O} grows"),
        ("{Q} to host congress of {O}", "{O}, a little larger, meets again"),
        (
            "{Q} joined {O} on {W} after a year as an observer.",
            "{O} admitted {Q} as a member on {W}, despite objections from two founding members.",
            "Delegates of {O} voted on {W} to accept {Q} as a full member.",
        ),
        (
            "{Q}, a new member of {O}, will host its next congress, delegates decided on {W}.",
            "{O} asked its newest member, {Q}, for its accounts on {W}.",
        ),
        (
            "The vote was {num} to 4, with two abstentions.",
            "Membership costs {money} a year.",
            "Members must publish an annual report on their emissions.",
            "The secretariat hailed “a step toward common rules.”",
            "Critics say the rules have no teeth.",
            "The congress meets once a year, usually by the sea.",
        ),
        "politics",
    ),
    "closure": Story(
        "dissolved",
        ("The end of {O}", "{O}: a post-mortem", "Creditors of {O} still wait"),
        ("Former employees of {O} plan lawsuit", "What remains of {O}"),
        (
            "{O} was dissolved on {D}, and its creditors are still waiting for their money.",
            (
                "The liquidator of {O}, which was wound up on {D}, told a court on {W} that little"
                " is left."
            ),
        ),
        (
            "Former employees of {O}, which ceased to exist on {D}, met on {W} to plan a lawsuit.",
            "The archive of {O}, dissolved on {D}, was saved from the shredder on {W}.",
        ),
        (
            "Claims amount to {money}, a court document shows.",
            "The auction of the furniture raised less than expected.",
            "About {staff} people lost their jobs.",
            "Prosecutors are looking into the accounts of the last two years.",
            "The canteen’s piano went to a primary school.",
            "A hearing has been set for next month.",
        ),
        "politics",
    ),
    "policy": Story(
        "minister",
        ("{P:f} defends plan", "{G} weighs new rules", "{T} promises answers in {G}"),
        ("{P:f} offers concessions", "In {G}, {T} yields a little", "No end to dispute in {G}"),
        (
            "{G}’s {T}, {P:f}, defended a disputed reform before parliament on {W}.",
            (
                "{P:f}, {T} of {G}, promised on {W} to publish the contracts that critics have"
                " demanded for months."
            ),
            "{T} {P:f} of {G} ruled out new taxes on {W}, hours after a deputy had floated them.",
        ),
        (
            "A month into the dispute, {G}’s {T}, {P:f}, offered concessions on {W}.",
            "The plans of {P:f}, {T} of {G}, passed a first test on {W}.",
            "{G}’s {T}, {P:f}, agreed on {W} to meet the strikers.",
        ),
        (
            "The bill passed its first reading by {num} votes.",
            "Opposition parties walked out before the vote.",
            "The reform would cost about {money} in its first year.",
            "Farmers drove their tractors to the parliament building.",
            "A draft of the report had circulated for weeks.",
            "Polls suggest that most voters have not made up their minds.",
            "The coalition has a majority of only {few} seats.",
            "Economists are divided over the effects.",
        ),
        "politics",
    ),
    "sport": Story(
        "job",
        (
            "{O} hold on for a point",
            "{P:f} under scrutiny at {O}",
            "Late goal lifts {O}",
            "{O} count the injured",
        ),
        ("{P:f} returns for {O}", "{O} take a breath"),
        (
            (
                "{P:f}, {T:b} {of:O}, could not hide {P.his} relief on {W} after a goal"
                " in stoppage time."
            ),
            (
                "{O} and their {T}, {P:f}, escaped with a draw on {W} in front of {staff} freezing"
                " spectators."
            ),
            "{T} {P:f} signed a new contract with {O} on {W}, hours before the window closed.",
        ),
        (
            "{P:f}, {T:d} {of:O}, returned to training on {W} after a month away.",
            "{O} rewarded {P:f}, their {T}, with a longer contract on {W}.",
            "{P:f}, {T:b} {of:O}, apologized on {W} for remarks about the referee.",
        ),
        (
            "The equalizer came with the last kick of the match.",
            "The visitors hit the post twice before halftime.",
            "The pitch had been cleared of snow by volunteers.",
            "The club is {few} points above the relegation zone.",
            "A penalty appeal was waved away in the second half.",
            "The next match is away, against the league leaders.",
            "Two starters were missing because of the flu.",
        ),
        "sport",
    ),
    "research": Story(
        "job",
        (
            "Study questions cost of flood walls",
            "{P:f} wins prize for lifetime of work",
            "A quiet voice at {O}",
        ),
        ("Sharp replies to study by {P:f}", "More data, fewer certainties"),
        (
            "{P:f}, {T:b} {of:O}, won a prize on {W} for work that was once dismissed as a hobby.",
            (
                "Flood walls cost more than they save, according to a study presented on {W} by"
                " {P:f}, {T:b} {of:O}."
            ),
            (
                "{P:f}, {T:b} {of:O}, told a congress on {W} that the data had been"
                " misread for decades."
            ),
        ),
        (
            "The study by {P:f}, {T:b} {of:O}, drew sharp replies on {W}.",
            "{P:f}, {T:b} {of:O}, published corrected tables on {W}.",
            "A second laboratory confirmed on {W} what {P:f}, {T:b} {of:O}, had found.",
        ),
        (
            "The study covers {num} towns over two decades.",
            "The prize is worth {money}.",
            "Other scholars urged caution, because the sample is small.",
            "The data will be published in the spring.",
            "An earlier version of the paper was rejected twice.",
            "Students filled the hall and the staircase outside.",
            "The work began with a box of old tide tables.",
        ),
        "science",
    ),
}
