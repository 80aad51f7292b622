"""Names, places and occupations that the fictional world is made of."""

# culture: (male first names, female first names, surnames, cities that people of this culture
# mostly come from)
CULTURES: dict[str, tuple[str, str, str, str]] = {
    "nigerian": (
        "Obinna Femi Uche Chinedu Emeka Tunde Babajide Ikenna Segun",
        "Ifeoma Bisi Zainab Ngozi Adaeze Folake Yewande Chiamaka Amina",
        (
            "Akande Okonkwo Fashola Uzor Ogunleye Bello Okafor Adeyemi Balogun Nwosu Eze Olawale"
            " Danjuma Obiora"
        ),
        "Lagos|Abuja|Ibadan|Enugu",
    ),
    "kenyan": (
        "Peter Wafula Ochieng Kamau Otieno Barasa Kiprono Mwangi Juma",
        "Grace Akinyi Wambui Wanjiru Achieng Nafula Chebet Makena Halima",
        "Kimani Onyango Cheruiyot Makokha Gitonga Kariuki Odhiambo Wekesa Rotich Njoroge Mutua",
        "Nairobi|Mombasa|Kisumu",
    ),
    "norwegian": (
        "Anders Olav Einar Erik Lars Henrik Sindre Magnus Tor",
        "Liv Randi Kari Ingrid Solveig Astrid Marit Hanne Silje",
        (
            "Fjeld Haugland Kvamme Ostby Rognli Sandvik Halvorsen Lindqvist Solberg Aasen Brekke"
            " Tveit Nygaard"
        ),
        "Oslo|Bergen|Stavanger|Tromso",
    ),
    "british": (
        "Nigel Edmund Hugh Graham Oliver Simon Alistair Duncan Rhys",
        "Rosalind Joan Tessa Harriet Imogen Fiona Eleanor Bethan Margaret",
        (
            "Thackeray Loxley Farringdon Bellamy Stanhope Whitcombe Ashdown Pryce Mallory Carstairs"
            " Hargreave Penrose"
        ),
        "London|Leeds|Bristol|Glasgow|Cardiff",
    ),
    "american": (
        "Gordon Leon Wesley Marcus Walter Dennis Raymond Curtis Joel",
        "Evelyn Janet Tanya Carla Denise Rachel Lorraine Naomi Paula",
        (
            "Pruitt Castleton Underhill Mercer Quigley Delacroix Hadley Brannigan Sturgess Kessler"
            " Tolliver Winslow"
        ),
        "Baltimore|Cleveland|Portland|Tucson|Savannah",
    ),
    "indian": (
        "Mohan Nikhil Gautam Arvind Rohan Suresh Vikram Anand Kiran",
        "Sunita Radha Nandini Priya Lakshmi Meera Kavita Anjali Deepa",
        (
            "Deshpande Iyengar Nambiar Subramaniam Kothari Raghunathan Chatterjee Kulkarni Menon"
            " Bhandari Srinivasan"
        ),
        "Chennai|Pune|Kolkata|Mysore",
    ),
    "spanish": (
        "Emilio Gonzalo Ruben Joaquin Rafael Esteban Tomas Ignacio Andres",
        "Marisol Ines Paloma Lucia Beatriz Carmen Pilar Ximena Rosario",
        (
            "Zamora Arriaga Benavides Luque Otero Palacios Ortega Villanueva Quiroga Cardenas"
            " Echeverria Montoya Salcedo"
        ),
        "Seville|Valparaiso|Rosario|Puebla|Bogota",
    ),
    "polish": (
        "Wojciech Leszek Adam Tomasz Andrzej Krzysztof Jakub Marek Piotr",
        "Barbara Urszula Magda Agnieszka Katarzyna Ewa Zofia Halina Joanna",
        (
            "Gorski Majewski Pawlak Rutkowski Sikora Urbanek Wojcik Lewandowicz Zielinski Kaczmarek"
            " Dabrowicz Sobczak"
        ),
        "Warsaw|Krakow|Gdansk|Lodz",
    ),
    "japanese": (
        "Ryota Satoshi Koji Kenji Hiroshi Takeshi Daisuke Shun Makoto",
        "Michiko Ayumi Keiko Yuko Naoko Haruka Emi Sachiko Reiko",
        (
            "Okabe Nishikawa Tamura Uchida Shiraishi Kawabata Morishita Takanori Hasegawa Ishibashi"
            " Kuroda Fujimori"
        ),
        "Osaka|Sapporo|Nagoya|Fukuoka",
    ),
    "lebanese": (
        "Tarek Walid Rami Karim Nabil Samir Fadi Ziad Elias",
        "Dina Yasmine Joumana Layla Rima Nadine Hala Salma Mireille",
        "Sfeir Gemayel Tabet Rahhal Daher Zgheib Haddad Khoury Mansour Nassar Saliba Azar",
        "Beirut|Tripoli|Amman",
    ),
    "german": (
        "Holger Ralf Jochen Dieter Matthias Jens Ulrich Stefan Bernd",
        "Gisela Silke Heike Annika Monika Sabine Katrin Ulrike Petra",
        (
            "Lindner Haberkorn Wiesinger Thalmann Kruse Brandstetter Vogelsang Reinhardt"
            " Kleinschmidt Osterkamp Falk"
        ),
        "Leipzig|Hamburg|Dresden|Bremen",
    ),
    "korean": (
        "Dong-hyun Jin-woo Ji-hoon Min-jae Sung-ho Tae-yang",
        "Ji-won Yu-na Soo-jin Hye-rin Eun-bi Mi-sook",
        "Seo Ahn Moon Jang Shim Noh Baek Chung Hwang Yoon",
        "Busan|Incheon|Daegu",
    ),
}

SURNAME_FIRST = {"korean"}

COUNTRY_OF = {
    "Lagos": "Nigeria", "Abuja": "Nigeria", "Ibadan": "Nigeria", "Enugu": "Nigeria",
    "Nairobi": "Kenya", "Mombasa": "Kenya", "Kisumu": "Kenya",
    "Oslo": "Norway", "Bergen": "Norway", "Stavanger": "Norway", "Tromso": "Norway",
    "London": "United Kingdom", "Leeds": "United Kingdom", "Bristol": "United Kingdom",
    "Glasgow": "United Kingdom", "Cardiff": "United Kingdom",
    "Baltimore": "United States", "Cleveland": "United States", "Portland": "United States",
    "Tucson": "United States", "Savannah": "United States",
    "Chennai": "India", "Pune": "India", "Kolkata": "India", "Mysore": "India",
    "Seville": "Spain", "Valparaiso": "Chile", "Rosario": "Argentina", "Puebla": "Mexico",
    "Bogota": "Colombia",
    "Warsaw": "Poland", "Krakow": "Poland", "Gdansk": "Poland", "Lodz": "Poland",
    "Osaka": "Japan", "Sapporo": "Japan", "Nagoya": "Japan", "Fukuoka": "Japan",
    "Beirut": "Lebanon", "Tripoli": "Lebanon", "Amman": "Jordan",
    "Leipzig": "Germany", "Hamburg": "Germany", "Dresden": "Germany", "Bremen": "Germany",
    "Busan": "South Korea", "Incheon": "South Korea", "Daegu": "South Korea",
    "Lisbon": "Portugal", "Accra": "Ghana", "Wellington": "New Zealand", "Geneva": "Switzerland",
    "Tallinn": "Estonia", "Montreal": "Canada", "Rotterdam": "Netherlands",
    "Singapore": "Singapore",
}  # fmt: skip

# Other names of a country; the article is written outside the mention.
COUNTRY_ALIASES = {
    "United Kingdom": ("Britain", "U.K."),
    "United States": ("U.S.",),
    "Netherlands": ("Holland",),
}
ARTICLED_COUNTRIES = {"United Kingdom", "United States", "Netherlands", "U.K.", "U.S."}

# sector: (what a company of it is called after its first word, what it does, its other job titles)
SECTORS: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "shipping": (
        ("Shipping", "Maritime", "Freight Lines"),
        "shipping",
        ("fleet manager", "port director"),
    ),
    "energy": (
        ("Energy", "Power", "Renewables"),
        "energy",
        ("chief engineer", "head of exploration"),
    ),
    "banking": (
        ("Bank", "Capital Partners", "Trust"),
        "financial",
        ("chief economist", "head of lending"),
    ),
    "media": (
        ("Media Group", "Press", "Broadcasting"),
        "media",
        ("editor", "correspondent", "columnist"),
    ),
    "pharma": (
        ("Pharmaceuticals", "Biosciences", "Laboratories"),
        "drug",
        ("head of research", "medical director"),
    ),
    "software": (
        ("Systems", "Software", "Analytics"),
        "software",
        ("chief technology officer", "lead engineer"),
    ),
    "food": (
        ("Foods", "Breweries", "Grain Company"),
        "food",
        ("head of purchasing", "plant manager"),
    ),
    "airline": (("Airways", "Air", "Aviation"), "aviation", ("pilot", "safety director")),
    "mining": (
        ("Minerals", "Mining Corporation", "Metals"),
        "mining",
        ("geologist", "head of operations"),
    ),
    "construction": (
        ("Construction", "Builders", "Infrastructure"),
        "construction",
        ("architect", "site manager"),
    ),
}

COMPANY_WORDS = (
    "Meridian", "Northgate", "Blue Heron", "Castellan", "Orrin", "Tidewater", "Kestrel",
    "Ironbridge", "Solvane",
    "Larkfield", "Pinnacle Bay", "Corvid", "Amberline", "Stonehaven", "Vantor", "Harrowgate",
    "Zephyrus", "Copperfield",
    "Lumina", "Granite Peak", "Sable", "Juniper", "Albion Cross", "Red Lantern", "Delphine",
    "Tramontane", "Quillon",
    "Fairweather", "Basalt", "Windmere", "Osprey", "Marlowe", "Kingfisher", "Palisade", "Aurelian",
    "Thornbury",
)  # fmt: skip

COMPANY_TITLES = (
    "chief executive",
    "chair",
    "finance director",
    "head of communications",
    "vice president",
    "board member",
)
MINISTRIES = (
    ("Finance", "finance minister"), ("Health", "health minister"), ("Transport",
    "transport minister"),
    ("Education", "education minister"), ("Energy", "energy minister"), ("Agriculture",
    "agriculture minister"),
    ("Justice", "justice minister"), ("Fisheries", "fisheries minister"),
)  # fmt: skip
MINISTRY_TITLES = ("deputy minister", "permanent secretary", "press secretary", "adviser")
UNIVERSITY_TITLES = (
    "professor of economics",
    "professor of chemistry",
    "law lecturer",
    "rector",
    "historian",
    "dean",
)
CLUB_WORDS = ("Rovers", "Athletic", "United", "Wanderers", "Rangers", "Dynamo")
CLUB_TITLES = (
    "goalkeeper",
    "striker",
    "midfielder",
    "head coach",
    "defender",
    "captain",
    "sporting director",
)
PLAYERS = frozenset({"goalkeeper", "striker", "midfielder", "defender", "captain"})
NGO_NAMES = (
    "Clean Harbors Foundation", "Open Ledger Institute", "Rivers Without Borders",
    "Global Seed Trust",
    "Coastal Rescue Federation", "Children’s Literacy Fund", "International Drought Council",
    "Safe Roads Coalition",
    "Press Freedom Observatory", "Migrant Workers’ Legal Centre",
    "Northern Fisheries Research Institute",
    "Institute for Public Budgets",
)  # fmt: skip
NGO_TITLES = (
    "executive director",
    "program director",
    "policy analyst",
    "secretary general",
    "campaigner",
)
ALLIANCES = (
    ("Continental Shipping Alliance", "CSA"), ("World Council of Insurers", "WCI"),
    ("Open Grid Association", "OGA"),
    ("International Union of Port Cities", "IUPC"), ("Federation of Independent Publishers", "FIP"),
    ("Global Compact on Generic Medicines", "GCGM"), ("Alliance of Regional Airlines", "ARA"),
    ("Sustainable Mining Forum", "SMF"), ("League of Coastal Clubs", "LCC"),
    ("Food Producers’ Union", "FPU"),
)  # fmt: skip
ALLIANCE_TITLES = (
    "secretary general",
    "president",
    "director of standards",
    "head of communications",
)

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November",
    "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

WORDS_BY_GENDER: dict[str, tuple[str, str]] = {
    "he": ("he", "she"), "his": ("his", "her"), "him": ("him", "her"), "son": ("son", "daughter"),
    "brother": ("brother", "sister"), "husband": ("husband", "wife"), "father": ("father",
    "mother"),
    "uncle": ("uncle", "aunt"), "nephew": ("nephew", "niece"), "grandson": ("grandson",
    "granddaughter"),
    "man": ("man", "woman"), "widower": ("widower", "widow"), "himself": ("himself", "herself"),
}  # fmt: skip

# Several people at one place may have these titles: "a striker", but "the chief executive".
SHARED_TITLES = frozenset(
    {
        "correspondent",
        "columnist",
        "lead engineer",
        "pilot",
        "plant manager",
        "geologist",
        "architect",
        "site manager",
        "board member",
        "vice president",
        "adviser",
        "professor of economics",
        "professor of chemistry",
        "law lecturer",
        "historian",
        "dean",
        "goalkeeper",
        "striker",
        "midfielder",
        "defender",
        "scout",
        "policy analyst",
        "campaigner",
        "editor",
        "deputy minister",
        "program director",
        "port director",
    }
)

PREDICATE_INVERSE = {
    "per:parents": "per:children",
    "per:children": "per:parents",
    "per:spouse": "per:spouse",
    "per:siblings": "per:siblings",
    "per:other_family": "per:other_family",
    "per:organizations_founded": "org:founded_by",
    "org:founded_by": "per:organizations_founded",
    "per:holds_shares_in": "org:shareholders",
    "org:holds_shares_in": "org:shareholders",
    "org:member_of": "org:members",
    "org:members": "org:member_of",
    "org:subsidiaries": "org:parents",
    "org:parents": "org:subsidiaries",
}

# predicate: the (subject type, object type) pairs that the schema allows
PREDICATE_TYPES: dict[str, tuple[tuple[str, str], ...]] = {
    "per:place_of_birth": (("PER", "GPE"),),
    "per:place_of_residence": (("PER", "GPE"),),
    "per:place_of_death": (("PER", "GPE"),),
    "per:date_of_birth": (("PER", "DATE"),),
    "per:date_of_death": (("PER", "DATE"),),
    "per:organizations_founded": (("PER", "ORG"),),
    "per:holds_shares_in": (("PER", "ORG"),),
    "per:schools_attended": (("PER", "ORG"),),
    "per:employee_or_member_of": (("PER", "ORG"), ("PER", "GPE")),
    "per:parents": (("PER", "PER"),),
    "per:children": (("PER", "PER"),),
    "per:spouse": (("PER", "PER"),),
    "per:siblings": (("PER", "PER"),),
    "per:other_family": (("PER", "PER"),),
    "per:title": (("PER", "TITLE"),),
    "org:place_of_headquarters": (("ORG", "GPE"),),
    "org:date_founded": (("ORG", "DATE"),),
    "org:date_dissolved": (("ORG", "DATE"),),
    "org:founded_by": (("ORG", "PER"),),
    "org:member_of": (("ORG", "ORG"),),
    "org:members": (("ORG", "ORG"),),
    "org:subsidiaries": (("ORG", "ORG"),),
    "org:parents": (("ORG", "ORG"),),
    "org:shareholders": (("ORG", "PER"), ("ORG", "ORG")),
    "org:holds_shares_in": (("ORG", "ORG"),),
}
